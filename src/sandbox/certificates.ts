// The certificate library asks for it to be loaded first.
import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'

export interface ServerCertificateOptions {
  /** What the certificate is for: host names and IP addresses. */
  readonly names: readonly string[]
  readonly notBefore?: Date
  readonly notAfter?: Date
}

export interface ServerCertificate {
  /** PEM texts. */
  readonly key: string
  readonly cert: string
}

/** A certificate authority that lives as long as the process: nothing of it is kept. */
export interface CertificateAuthority {
  /** PEM, to trust. */
  readonly certificate: string
  issue(options: ServerCertificateOptions): Promise<ServerCertificate>
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const DAY_MS = 86_400_000
const LIFETIME_MS = 365 * DAY_MS

export async function createCertificateAuthority(name: string, now = Date.now()): Promise<CertificateAuthority> {
  const keys = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
  const authority = await X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=${name}`,
      keys,
      signingAlgorithm: ALGORITHM,
      // Clocks of clients differ a little.
      notBefore: new Date(now - DAY_MS),
      notAfter: new Date(now + LIFETIME_MS),
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      ],
    },
    webcrypto,
  )
  return {
    certificate: authority.toString('pem'),
    async issue({ names, notBefore = new Date(now - DAY_MS), notAfter = new Date(now + LIFETIME_MS) }) {
      const own = await webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])
      const certificate = await X509CertificateGenerator.create(
        {
          subject: `CN=${names[0] ?? 'localhost'}`,
          issuer: authority.subject,
          publicKey: own.publicKey,
          signingKey: keys.privateKey,
          signingAlgorithm: ALGORITHM,
          notBefore,
          notAfter,
          extensions: [
            new BasicConstraintsExtension(false),
            // Tells authorities of one name apart.
            await AuthorityKeyIdentifierExtension.create(keys.publicKey, false, webcrypto),
            new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
            new SubjectAlternativeNameExtension(
              names.map((value) => ({ type: /^[\d.]+$|:/.test(value) ? 'ip' : 'dns', value })),
            ),
          ],
        },
        webcrypto,
      )
      const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', own.privateKey), 'PRIVATE KEY')
      return { key, cert: certificate.toString('pem') }
    },
  }
}
