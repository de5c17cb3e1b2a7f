import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { ManagementSettings } from '../../domain/catalogue.ts'
import { KeymeshError } from '../../domain/errors.ts'
import type { SempAddress } from './semp-paths.ts'

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** Made once: every connection would otherwise parse the certificates again. */
export function secureContextOf(settings: ManagementSettings, address: SempAddress): SecureContext | undefined {
  if (!address.isTls || settings.caCertificate === undefined) return undefined
  try {
    const certificates = settings.caCertificate.match(PEM_CERTIFICATE)
    if (certificates === null) throw new Error('no PEM certificate')
    // A secure context skips what it cannot read, and would then trust too little without a word.
    for (const certificate of certificates) new X509Certificate(certificate)
    return createSecureContext({ ca: certificates })
  } catch {
    throw new KeymeshError({
      code: 'INVALID_CA_CERTIFICATE',
      fate: 'stop',
      message: `The CA certificate for ${address.display} cannot be read.`,
      hint: 'Give PEM certificates, each from its BEGIN to its END line.',
    })
  }
}
