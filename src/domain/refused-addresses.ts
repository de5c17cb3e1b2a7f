/** Networks that no public receiver stands in: the special-purpose registries of IANA (RFC 6890), and multicast. */
const REFUSED = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/8',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]

/** The words that stand for networks, in the settings as with proxies. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** The bits of an address, most significant first. */
interface Address {
  readonly width: 32 | 128
  readonly bits: bigint
}

export interface Network extends Address {
  readonly prefix: number
}

/** Networks as `10.0.0.0/8`, addresses, or `loopback`, `linklocal`, `uniquelocal`; what is none of them is left out. */
export function parseNetworks(given: readonly string[]): readonly Network[] {
  return given
    .flatMap((each) => NAMED[each] ?? [each])
    .flatMap((text) => {
      const [host = '', prefix] = text.split('/')
      const address = parseAddress(host)
      return address === null ? [] : [{ ...address, prefix: prefix === undefined ? address.width : Number(prefix) }]
    })
}

const refusedNetworks = parseNetworks(REFUSED)

/**
 * Whether nothing may be sent to an address, `allowed` aside. IPv6 addresses that carry an IPv4 address (mapped,
 * compatible, translated, NAT64, 6to4) are judged by it too: a gateway may lead there.
 */
export function isRefusedAddress(text: string, allowed: readonly Network[]): boolean {
  const address = parseAddress(text)
  if (address === null) return true
  const carried = carriedAddress(address)
  if (isIn(address, allowed) || (carried !== null && isIn(carried, allowed))) return false
  return carried === null ? isIn(address, refusedNetworks) : isIn(carried, refusedNetworks)
}

/** Whether a host of a URL is an address and not a name; IPv6 with or without brackets. */
export const isAddress = (host: string): boolean => parseAddress(host) !== null

const isIn = ({ width, bits }: Address, networks: readonly Network[]): boolean =>
  networks.some((network) => {
    const rest = BigInt(width - network.prefix)
    return network.width === width && network.bits >> rest === bits >> rest
  })

function parseAddress(text: string): Address | null {
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) {
    const parts = text.split('.').map(Number)
    return parts.some((part) => part > 255) ? null : { width: 32, bits: joined(parts, 8n) }
  }
  const plain = text.replace(/^\[|\]$/g, '').split('%')[0] ?? ''
  if (!plain.includes(':')) return null
  // The parser of URLs writes every form in the same way: lower-case hexadecimal, at most one `::`.
  const host = URL.parse(`http://[${plain}]`)?.hostname.slice(1, -1)
  if (host === undefined) return null
  const [head, tail] = host.split('::').map(groups)
  const left = head ?? []
  const right = tail ?? []
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => 0)
  return { width: 128, bits: joined([...left, ...zeros, ...right], 16n) }
}

function groups(text: string): readonly number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
}

function joined(parts: readonly number[], width: bigint): bigint {
  return parts.reduce((bits, part) => (bits << width) | BigInt(part), 0n)
}

const CARRIERS: readonly (Network & { readonly shift: bigint })[] = [
  { network: '::/96', shift: 0n },
  { network: '::ffff:0:0/96', shift: 0n },
  { network: '::ffff:0:0:0/96', shift: 0n },
  { network: '64:ff9b::/32', shift: 0n },
  { network: '2002::/16', shift: 80n },
].flatMap(({ network, shift }) => parseNetworks([network]).map((parsed) => ({ ...parsed, shift })))

function carriedAddress(address: Address): Address | null {
  const carrier = CARRIERS.find((each) => isIn(address, [each]))
  return carrier === undefined ? null : { width: 32, bits: (address.bits >> carrier.shift) & 0xffffffffn }
}
