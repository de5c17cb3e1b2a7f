import { type Attributes, key, parentKey, text } from './attribute.ts'

/** MsgVpnClient of the monitoring API: whose a connection is; there are some hundred counters more. */
export const CLIENT_ATTRIBUTES: Attributes = {
  aclProfileName: text('', 0, 32),
  clientName: key(1, 160),
  clientProfileName: text('', 0, 32),
  clientUsername: text('', 0, 189),
  msgVpnName: parentKey(1, 32),
}
