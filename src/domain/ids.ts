/** Branded ids: a broker id never passes for a registration id. Parsed once, at the edge. */
declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

export type AccountId = Branded<'AccountId'>
export type BrokerId = Branded<'BrokerId'>
export type RegistrationId = Branded<'RegistrationId'>
export type AccessRequestId = Branded<'AccessRequestId'>
export type ProductId = Branded<'ProductId'>
export type EventApiId = Branded<'EventApiId'>
export type RunId = Branded<'RunId'>
/** The client username of a credential. */
export type ConsumerKey = Branded<'ConsumerKey'>

export const accountId = (text: string): AccountId => text as AccountId
export const brokerId = (text: string): BrokerId => text as BrokerId
export const registrationId = (text: string): RegistrationId => text as RegistrationId
export const accessRequestId = (text: string): AccessRequestId => text as AccessRequestId
export const productId = (text: string): ProductId => text as ProductId
export const eventApiId = (text: string): EventApiId => text as EventApiId
export const runId = (text: string): RunId => text as RunId
export const consumerKey = (text: string): ConsumerKey => text as ConsumerKey
