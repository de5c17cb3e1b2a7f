import { type Attributes, flag, key, parentKey, text } from './attribute.ts'

/** MsgVpnClientUsername of SEMP 2.49. */
export const CLIENT_USERNAME_ATTRIBUTES: Attributes = {
  aclProfileName: text('default', 1, 32, undefined, { autoDisable: ['enabled'] }),
  clientProfileName: text('default', 1, 32, /^#?[A-Za-z0-9\-_]+$/, { autoDisable: ['enabled'] }),
  clientUsername: key(1, 189, /^[^?*]+$/),
  enabled: flag(false),
  guaranteedEndpointPermissionOverrideEnabled: flag(false),
  msgVpnName: parentKey(1, 32, /^[^*?]+$/),
  password: text('', 0, 128, undefined, { writeOnly: true, opaque: true, sensitive: true, readOptional: true }),
  subscriptionManagerEnabled: flag(false),
}

/** MsgVpnClientUsernameAttribute of SEMP 2.49. */
export const CLIENT_USERNAME_ATTRIBUTE_ATTRIBUTES: Attributes = {
  attributeName: key(1, 64, /^[A-Za-z][A-Za-z0-9-]*$/),
  attributeValue: key(1, 256),
  clientUsername: parentKey(1, 189, /^[^?*]+$/),
  msgVpnName: parentKey(1, 32, /^[^*?]+$/),
}
