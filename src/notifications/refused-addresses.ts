import { BlockList, isIP } from 'node:net'

/** Networks that no public receiver stands in (the special-purpose registries of IANA, RFC 6890). */
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
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
] as const

/** The words that stand for networks, in the settings as with proxies. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** Networks as `10.0.0.0/8`, addresses, or `loopback`, `linklocal`, `uniquelocal`. */
export function networks(given: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of given.flatMap((each) => NAMED[each] ?? [each])) {
    const [address = '', bits] = network.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    list.addSubnet(address, bits === undefined ? (family === 'ipv6' ? 128 : 32) : Number(bits), family)
  }
  return list
}

const refused = networks(REFUSED)

/**
 * Whether nothing may be sent to an address, `allowed` aside. IPv6 addresses that carry an IPv4 address (mapped, compatible,
 * NAT64, 6to4) are judged by it: a gateway may lead there.
 */
export function isRefusedAddress(address: string, allowed: BlockList): boolean {
  const family = isIP(address)
  if (family === 0) return true
  if (family === 4) return !allowed.check(address) && refused.check(address)
  const groups = groupsOf(address)
  if (groups === null) return true
  if (allowed.check(address, 'ipv6')) return false
  const inside = carriedAddress(groups)
  if (inside !== null) return isRefusedAddress(inside, allowed)
  return refused.check(address, 'ipv6')
}

/** `::1` and `::` count as the IPv4 addresses 0.0.0.1 and 0.0.0.0, which are refused too. */
function carriedAddress(groups: readonly number[]): string | null {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = groups
  const dotted = (high: number, low: number): string => [high >> 8, high & 255, low >> 8, low & 255].join('.')
  const startsWithZeros = [a, b, c, d].every((group) => group === 0)
  if (startsWithZeros && e === 0 && (f === 0 || f === 0xffff)) return dotted(g, h)
  // IPv4-translated, ::ffff:0:0/96.
  if (startsWithZeros && e === 0xffff && f === 0) return dotted(g, h)
  if (a === 0x64 && b === 0xff9b) return dotted(g, h)
  if (a === 0x2002) return dotted(b, c)
  return null
}

/** The eight groups of an IPv6 address; null when it is none. */
function groupsOf(address: string): readonly number[] | null {
  const plain = address.split('%')[0] ?? ''
  const host = URL.parse(`http://[${plain}]`)?.hostname.slice(1, -1)
  if (host === undefined) return null
  const [left = '', right] = host.split('::')
  const parse = (text: string): number[] =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
  const [head, tail] = [parse(left), parse(right ?? '')]
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail]
}
