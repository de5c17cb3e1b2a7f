import { type Attributes, choice, flag, integer, key, parentKey, percentThreshold, text } from './attribute.ts'

const egress = { autoDisable: ['egressEnabled'] } as const

/** MsgVpnQueue of SEMP 2.49. */
export const QUEUE_ATTRIBUTES: Attributes = {
  accessType: choice('exclusive', ['exclusive', 'non-exclusive'], egress),
  consumerAckPropagationEnabled: flag(true),
  deadMsgQueue: text('#DEAD_MSG_QUEUE', 0, 200, /^[^*?'<>&;]*$/),
  deliveryCountEnabled: flag(false),
  deliveryDelay: integer(0, 0, 4_294_967_295),
  egressEnabled: flag(false),
  eventBindCountThreshold: percentThreshold(60, 80, 4_294_967_295),
  eventMsgSpoolUsageThreshold: percentThreshold(18, 25, 4_294_967_295),
  eventRejectLowPriorityMsgLimitThreshold: percentThreshold(60, 80, 4_294_967_295),
  ingressEnabled: flag(false),
  maxBindCount: integer(1000, 0, 10_000),
  maxDeliveredUnackedMsgsPerFlow: integer(10_000, 1, 1_000_000),
  maxMsgSize: integer(10_000_000, 0, 30_000_000),
  maxMsgSpoolUsage: integer(5000, 0, 6_000_000),
  maxRedeliveryCount: integer(0, 0, 255),
  maxTtl: integer(0, 0, 4_294_967_295),
  msgVpnName: parentKey(1, 32, /^[^*?]+$/),
  owner: text('', 0, 189, undefined, egress),
  partitionCount: integer(0, 0, 1000),
  partitionRebalanceDelay: integer(5, 0, 4_294_967_295),
  partitionRebalanceMaxHandoffTime: integer(3, 0, 4_294_967_295),
  permission: choice('no-access', ['no-access', 'read-only', 'consume', 'modify-topic', 'delete'], egress),
  queueName: key(1, 200, /^[^*?'<>&;]+$/),
  redeliveryDelayEnabled: flag(false, egress),
  redeliveryDelayInitialInterval: integer(1000, 1, 3_600_000, egress),
  redeliveryDelayMaxInterval: integer(64_000, 1, 10_800_000, egress),
  redeliveryDelayMultiplier: integer(200, 100, 500, egress),
  redeliveryEnabled: flag(true),
  rejectLowPriorityMsgEnabled: flag(false),
  rejectLowPriorityMsgLimit: integer(0, 0, 4_294_967_295),
  rejectMsgToSenderOnDiscardBehavior: choice('when-queue-enabled', ['never', 'when-queue-enabled', 'always'], {
    autoDisable: ['rejectLowPriorityMsgEnabled'],
  }),
  respectDmqEligibleEnabled: flag(false),
  respectMsgPriorityEnabled: flag(false, { autoDisable: ['egressEnabled', 'ingressEnabled'] }),
  respectTtlEnabled: flag(false),
}

/** MsgVpnQueueSubscription of SEMP 2.49. */
export const QUEUE_SUBSCRIPTION_ATTRIBUTES: Attributes = {
  msgVpnName: parentKey(1, 32, /^[^*?]+$/),
  queueName: parentKey(1, 200, /^[^*?'<>&;]+$/),
  subscriptionTopic: key(1, 250),
}
