import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { receiverProblem } from '../../src/domain/notifications.ts'
import { isRefusedAddress, parseNetworks } from '../../src/domain/refused-addresses.ts'

const REFUSED: Readonly<Record<string, readonly string[]>> = {
  'this host': ['0.0.0.0', '0.1.2.3', '::'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1', '0:0:0:0:0:0:0:1'],
  private: ['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', 'fc00::1', 'fdff::1'],
  'link-local, where clouds keep their metadata': ['169.254.169.254', 'fe80::1', 'fe80::1%eth0', 'febf::1'],
  'shared by carriers': ['100.64.0.1', '100.127.255.255'],
  'for protocols, benchmarks and examples': ['192.0.0.1', '192.0.2.1', '198.18.0.1', '198.19.255.255', '2001:db8::1'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  reserved: ['240.0.0.1', '255.255.255.255', '100::1', 'fec0::1'],
  'IPv4 within IPv6': [
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    '::ffff:0:10.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::10.0.0.1',
    '2002:7f00:1::',
    '2002:a00:1::5',
  ],
  'no address': ['', 'localhost', '256.0.0.1', '1.2.3', '1.2.3.4.5', ':::', '12345::', '::1::'],
}
const TAKEN = [
  '1.1.1.1',
  '9.255.255.255',
  '11.0.0.1',
  '100.63.255.255',
  '100.128.0.1',
  '172.15.255.255',
  '172.32.0.1',
  '192.167.0.1',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450::1',
  '::ffff:1.1.1.1',
  '64:ff9b::101:101',
]

describe('an address', () => {
  it.each(Object.entries(REFUSED).flatMap(([why, addresses]) => addresses.map((address) => [address, why])))(
    '%s is refused: %s',
    (address) => expect(isRefusedAddress(address, [])).toBe(true),
  )

  it.each(TAKEN)('%s is taken', (address) => expect(isRefusedAddress(address, [])).toBe(false))

  const allowances: Readonly<Record<string, readonly [allowed: string, address: string, refused: boolean]>> = {
    'in an allowed network': ['10.1.0.0/16', '10.1.2.3', false],
    'beside an allowed network': ['10.1.0.0/16', '10.2.2.3', true],
    'that is allowed by itself': ['192.168.7.7', '192.168.7.7', false],
    'beside one that is allowed by itself': ['192.168.7.7', '192.168.7.8', true],
    'of loopback, by the word': ['loopback', '::1', false],
    'of loopback, mapped, by the word': ['loopback', '::ffff:127.0.0.1', false],
    'of the cloud, where private ones are allowed': ['uniquelocal', '169.254.169.254', true],
    'that is private, by the word': ['uniquelocal', '172.20.1.1', false],
    'of IPv6 in an allowed network': ['fd12::/16', 'fd12::99', false],
    'where an IPv4 network of all zeros is allowed': ['0.0.0.0/0', 'fe80::1', true],
  }
  it.each(Object.entries(allowances))('%s', (_sentence, [allowed, address, refused]) => {
    expect(isRefusedAddress(address, parseNetworks([allowed]))).toBe(refused)
  })

  it('is judged alike in every way to write it', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const mapped = `::ffff:${address}`
        expect(isRefusedAddress(mapped, [])).toBe(isRefusedAddress(address, []))
        expect(isRefusedAddress(new URL(`http://[${mapped}]`).hostname, [])).toBe(isRefusedAddress(address, []))
      }),
    )
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        const written = new URL(`http://[${address}]`).hostname
        expect(isRefusedAddress(written, [])).toBe(isRefusedAddress(address, []))
      }),
    )
  })
})

describe('a URL of a receiver', () => {
  const cases: Readonly<Record<string, readonly [url: string, allowHttp: boolean, problem: RegExp | null]>> = {
    'https to a name': ['https://hooks.example.org/a?b=c', false, null],
    'https with a user': ['https://ada:secret@hooks.example.org', false, null],
    'http, where it is not allowed': ['http://hooks.example.org', false, /https/],
    'http, where it is allowed': ['http://hooks.example.org', true, null],
    'another protocol': ['ftp://hooks.example.org', true, /https/],
    'a file': ['file:///etc/passwd', true, /https/],
    'a private address': ['https://10.0.0.1/', false, /private/],
    'a private address of IPv6': ['https://[fd00::1]/', false, /private/],
    'loopback as one number': ['https://2130706433/', false, /private/],
    'loopback in hexadecimal': ['https://0x7f.1/', false, /private/],
    'loopback in octal': ['https://0177.0.0.1/', false, /private/],
    'loopback in full-width digits': ['https://１２７.0.0.1/', false, /private/],
    'a fragment': ['https://hooks.example.org/#part', false, /fragment/],
  }
  it.each(Object.entries(cases))('with %s', (_sentence, [url, allowHttp, problem]) => {
    const said = receiverProblem(new URL(url), { allowHttp, allowed: [] })
    if (problem === null) expect(said).toBeNull()
    else expect(said).toMatch(problem)
  })
})
