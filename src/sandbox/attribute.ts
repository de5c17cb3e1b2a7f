/** Attributes of SEMP objects as data: what the sandbox accepts, keeps and gives back. */

export type Scalar = string | number | boolean

/** A nested object of an event threshold. A broker keeps either the percentages or the absolute values. */
export interface ThresholdValue {
  readonly clearPercent?: number
  readonly setPercent?: number
  readonly clearValue?: number
  readonly setValue?: number
}
export type Value = Scalar | ThresholdValue
export type Values = Record<string, Value>

/** The least access that may change an attribute. */
export type Scope = 'vpn/read-write' | 'global/read-write' | 'global/mesh-manager'

export interface Traits {
  /** Flags that the broker switches off for a moment to apply a change, which drops live clients. */
  readonly autoDisable?: readonly string[]
  /** Attributes that a request must also hold when it holds this one. */
  readonly requires?: readonly string[]
  readonly writeOnly?: true
  readonly opaque?: true
  readonly sensitive?: true
  readonly readOptional?: true
  readonly deprecated?: true
  /** The table's own scope when absent. */
  readonly patchScope?: Scope
}

/** `own`: the object's name, required in a POST; `parent`: taken from the path. Neither can ever be changed. */
export type Identity = 'own' | 'parent'

export interface TextAttribute extends Traits {
  readonly type: 'string'
  readonly identity?: Identity
  readonly default?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: RegExp
  readonly values?: readonly string[]
}
export interface IntegerAttribute extends Traits {
  readonly type: 'integer'
  readonly default: number | PlatformDefault
  readonly minimum: number
  readonly maximum: number
}
export interface FlagAttribute extends Traits {
  readonly type: 'boolean'
  readonly default: boolean
}
export interface ThresholdAttribute extends Traits {
  readonly type: 'threshold'
  readonly percent?: { readonly clear: number; readonly set: number }
  /** `clear` and `set` are there when the threshold has no percentages. */
  readonly value?: { readonly maximum: number; readonly clear?: number; readonly set?: number }
}
export type Attribute = TextAttribute | IntegerAttribute | FlagAttribute | ThresholdAttribute
export type Attributes = Readonly<Record<string, Attribute>>

/** Defaults that the API description leaves to the platform. */
export const PLATFORM_MAX = 'DefaultMaxForPlatform()'
export const PLATFORM_VARIES = 'DefaultVariesByPlatform()'
export type PlatformDefault = typeof PLATFORM_MAX | typeof PLATFORM_VARIES

/** What this simulated platform puts in place of `PLATFORM_VARIES`, where the range allows it. */
const PLATFORM_COUNT = 50_000

export const key = (minLength: number, maxLength: number, pattern?: RegExp): TextAttribute => ({
  type: 'string',
  identity: 'own',
  minLength,
  maxLength,
  ...(pattern && { pattern }),
})
export const keyChoice = (values: readonly string[]): TextAttribute => ({ type: 'string', identity: 'own', values })
export const parentKey = (minLength: number, maxLength: number, pattern?: RegExp): TextAttribute => ({
  ...key(minLength, maxLength, pattern),
  identity: 'parent',
})
export const text = (
  defaultText: string,
  minLength: number,
  maxLength: number,
  pattern?: RegExp,
  traits?: Traits,
): TextAttribute => ({
  type: 'string',
  default: defaultText,
  minLength,
  maxLength,
  ...(pattern && { pattern }),
  ...traits,
})
export const choice = (defaultText: string, values: readonly string[], traits?: Traits): TextAttribute => ({
  type: 'string',
  default: defaultText,
  values,
  ...traits,
})
export const integer = (
  defaultNumber: number | PlatformDefault,
  minimum: number,
  maximum: number,
  traits?: Traits,
): IntegerAttribute => ({ type: 'integer', default: defaultNumber, minimum, maximum, ...traits })
export const flag = (defaultFlag: boolean, traits?: Traits): FlagAttribute => ({
  type: 'boolean',
  default: defaultFlag,
  ...traits,
})
export const percentThreshold = (clear: number, set: number, maximumValue?: number): ThresholdAttribute => ({
  type: 'threshold',
  percent: { clear, set },
  ...(maximumValue !== undefined && { value: { maximum: maximumValue } }),
})
export const valueThreshold = (clear: number, set: number, maximum: number): ThresholdAttribute => ({
  type: 'threshold',
  value: { maximum, clear, set },
})

/** The value an attribute takes when nobody sets it; undefined for identities. */
export function defaultOf(attribute: Attribute): Value | undefined {
  switch (attribute.type) {
    case 'string':
    case 'boolean':
      return attribute.default
    case 'integer':
      if (attribute.default === PLATFORM_MAX) return attribute.maximum
      if (attribute.default === PLATFORM_VARIES) return Math.min(attribute.maximum, PLATFORM_COUNT)
      return attribute.default
    case 'threshold':
      return attribute.percent !== undefined
        ? Object.freeze({ clearPercent: attribute.percent.clear, setPercent: attribute.percent.set })
        : Object.freeze({ clearValue: attribute.value?.clear ?? 0, setValue: attribute.value?.set ?? 0 })
    default:
      return attribute satisfies never
  }
}
