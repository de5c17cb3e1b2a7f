import { type Attributes, choice, key, keyChoice, parentKey } from './attribute.ts'

/** MsgVpnAclProfile of SEMP 2.49. */
export const ACL_PROFILE_ATTRIBUTES: Attributes = {
  aclProfileName: key(1, 32),
  clientConnectDefaultAction: choice('disallow', ['allow', 'disallow']),
  msgVpnName: parentKey(1, 32, /^[^*?]+$/),
  publishTopicDefaultAction: choice('disallow', ['allow', 'disallow']),
  subscribeShareNameDefaultAction: choice('allow', ['allow', 'disallow']),
  subscribeTopicDefaultAction: choice('disallow', ['allow', 'disallow']),
}

/** MsgVpnAclProfileClientConnectException of SEMP 2.49. */
export const CLIENT_CONNECT_EXCEPTION_ATTRIBUTES: Attributes = {
  aclProfileName: parentKey(1, 32),
  clientConnectExceptionAddress: key(
    0,
    43,
    /^\s*((((1?[0-9]?[0-9]|2[0-4][0-9]|25[0-5])\.){3}(1?[0-9]?[0-9]|2[0-4][0-9]|25[0-5])\/([0-9]|[1-2][0-9]|3[0-2]))|((([0-9a-fA-F]{1,4}:){7,7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,5}(:[0-9a-fA-F]{1,4}){1,2}|([0-9a-fA-F]{1,4}:){1,4}(:[0-9a-fA-F]{1,4}){1,3}|([0-9a-fA-F]{1,4}:){1,3}(:[0-9a-fA-F]{1,4}){1,4}|([0-9a-fA-F]{1,4}:){1,2}(:[0-9a-fA-F]{1,4}){1,5}|[0-9a-fA-F]{1,4}:((:[0-9a-fA-F]{1,4}){1,6})|:((:[0-9a-fA-F]{1,4}){1,7}|:))\/([0-9]|[1-9][0-9]|1[0-1][0-9]|12[0-8])))\s*$/,
  ),
  msgVpnName: parentKey(1, 32, /^[^*?]+$/),
}

/** MsgVpnAclProfilePublishTopicException of SEMP 2.49. */
export const PUBLISH_TOPIC_EXCEPTION_ATTRIBUTES: Attributes = {
  aclProfileName: parentKey(1, 32),
  msgVpnName: parentKey(1, 32, /^[^*?]+$/),
  publishTopicException: key(1, 250),
  publishTopicExceptionSyntax: keyChoice(['smf', 'mqtt']),
}

/** MsgVpnAclProfileSubscribeTopicException of SEMP 2.49. */
export const SUBSCRIBE_TOPIC_EXCEPTION_ATTRIBUTES: Attributes = {
  aclProfileName: parentKey(1, 32),
  msgVpnName: parentKey(1, 32, /^[^*?]+$/),
  subscribeTopicException: key(1, 250),
  subscribeTopicExceptionSyntax: keyChoice(['smf', 'mqtt']),
}

/** MsgVpnAclProfileSubscribeShareNameException of SEMP 2.49. */
export const SUBSCRIBE_SHARE_NAME_EXCEPTION_ATTRIBUTES: Attributes = {
  aclProfileName: parentKey(1, 32),
  msgVpnName: parentKey(1, 32, /^[^*?]+$/),
  subscribeShareNameException: key(1, 250),
  subscribeShareNameExceptionSyntax: keyChoice(['smf', 'mqtt']),
}
