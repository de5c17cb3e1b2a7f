import { html } from 'hono/html'
import type { ClassOfServicePolicy } from '../../domain/catalogue.ts'
import type { RuleResult } from '../../domain/visibility.ts'
import type { CatalogueEventApi, CatalogueProduct, CatalogueVersion, ProductUse } from '../../store/catalogue-view.ts'
import { CATALOGUE_PATH, EVENT_APIS_PATH, shownVersion, stateChip, visibilityChip } from './catalogue-page.ts'
import { chip, counted, facts, number, pageHead, segment, type Tone, table } from './components.ts'
import type { Html, Page } from './page.ts'
import { brokerLink, eventApiPath, productPath, withCode } from './record-parts.ts'

export interface ProductPageData {
  readonly product: CatalogueProduct
  readonly uses: readonly ProductUse[]
}

export function productPage({ product, uses }: ProductPageData): Page {
  const { id, name, description, versions, applicationDomainId, shared } = product
  const isVisible = versions.some(({ visible }) => visible)
  return {
    title: name,
    section: 'catalogue',
    live: isVisible ? `${name} is visible.` : `${name} is not visible.`,
    content: html`${pageHead({
      title: name,
      above: [{ name: 'Catalogue', path: CATALOGUE_PATH }],
      beside: visibilityChip(isVisible),
      ...(description === '' ? {} : { lede: description }),
    })}
<section class="panel" aria-labelledby="facts-title"><h2 id="facts-title" class="visually-hidden">Facts</h2>
${facts([
  ['Id', html`<code>${id}</code>`],
  ['Application domain', applicationDomainId ?? html`<span class="faint">none</span>`],
  ['Shared', shared ? 'yes' : 'no'],
  ['Versions', number(versions.length)],
  ['What the API shows', shownInApi(product)],
])}
</section>
${versions.map((version) => versionSection(version, uses))}
${versions.length === 0 ? html`<p class="empty">The product has no version, so there is nothing to show.</p>` : ''}`,
  }
}

function shownInApi(product: CatalogueProduct): string {
  const shown = shownVersion(product)
  return shown?.visible === true ? `version ${shown.version}` : 'nothing of it'
}

function versionSection(version: CatalogueVersion, uses: readonly ProductUse[]): Html {
  const id = `v${version.version}`
  return html`<section id="${id}" class="version" aria-labelledby="${id}-title">
<div class="panel-head"><h2 id="${id}-title">Version ${version.version}${version.displayName === '' ? '' : html` <span class="display-name">${version.displayName}</span>`}</h2>
<p class="chips">${stateChip(version.state)} ${visibilityChip(version.visible)} ${chip('idle', `${version.approvalType} approval`)}</p></div>
${version.description === '' ? '' : html`<p>${version.description}</p>`}
<div class="columns">
<div class="panel"><h3>Why it is ${version.visible ? '' : 'not '}visible</h3>
${rules(version.rules)}
</div>
<div class="panel"><h3>Brokers</h3>
${version.brokerUses.length === 0 ? html`<p class="faint">It is associated with no broker.</p>` : version.brokerUses.map(brokerUse)}
<h3>Access requests</h3>
${requests(version.version, uses)}
</div>
</div>
<h3>Plans</h3>
${plansTable(version)}
<h3>Event APIs</h3>
${
  version.eventApis.length === 0
    ? html`<p class="empty">It holds no Event API.</p>`
    : html`<ul class="tiles">${version.eventApis.map((api) => html`<li><a href="${eventApiPath(api.id)}#v${api.version}">${api.id}</a> <span class="faint">${api.version}</span></li>`)}</ul>`
}
</section>
`
}

export function rules(results: readonly RuleResult<string>[]): Html {
  return html`<ul class="rules">${results.map(
    ({ holds, explanation, fix }) =>
      html`<li class="rule ${holds ? 'holds' : 'fails'}"><span class="sign" aria-hidden="true">${holds ? '✓' : '✗'}</span><div><span class="visually-hidden">${holds ? 'Holds: ' : 'Fails: '}</span>${explanation}${fix === null ? '' : html` <span class="fix">${withCode(fix)}</span>`}</div></li>`,
  )}</ul>`
}

function brokerUse({ id, usable, rules: results }: CatalogueVersion['brokerUses'][number]): Html {
  return html`<div class="broker-use"><p>${brokerLink(id)} ${usable ? chip('good', 'usable') : chip('warn', 'not usable')}</p>
${usable ? '' : rules(results.filter(({ holds }) => !holds))}</div>`
}

const REQUEST_TONES: Readonly<Record<string, Tone>> = {
  LIVE: 'good',
  APPROVED: 'busy',
  PENDING_APPROVAL: 'warn',
  ERROR: 'bad',
}

function requests(version: string, uses: readonly ProductUse[]): Html {
  const ours = uses.filter((use) => use.version === version)
  if (ours.length === 0) return html`<p class="faint">Nobody asks for it.</p>`
  return html`<p class="chips">${ours.map(({ state, count }) => html`${chip(REQUEST_TONES[state] ?? 'idle', `${number(count)} ${state.toLowerCase().replaceAll('_', ' ')}`)} `)}</p>`
}

function plansTable({ version, plans }: CatalogueVersion): Html {
  return table({
    caption: `Plans of version ${version}`,
    columns: [
      { name: 'Plan' },
      { name: 'Delivery' },
      { name: 'Queues' },
      { name: 'Access' },
      { name: 'Time to live' },
      { name: 'Spool', numeric: true },
    ],
    rows: plans.map(({ id, name, classOfServicePolicy: policy }) => ({
      id: `v${version}-plan-${segment(id)}`,
      cells: [
        html`${name}${name === id ? '' : html` <span class="faint">${id}</span>`}`,
        policy.messageDeliveryMode,
        ...queueCells(policy),
      ],
    })),
    empty: 'It has no plan.',
  })
}

/** Only guaranteed delivery has queues. */
function queueCells(policy: ClassOfServicePolicy): readonly (Html | string)[] {
  if (policy.messageDeliveryMode === 'direct')
    return Array.from({ length: 4 }, () => html`<span class="faint">none</span>`)
  const { queueType, accessType, maximumTimeToLive, maxMsgSpoolUsage } = policy
  return [
    queueType === 'combined' ? 'one for all' : 'one per Event API',
    accessType,
    maximumTimeToLive > 0 ? `${number(maximumTimeToLive)} s` : 'no end',
    maxMsgSpoolUsage > 0 ? `${number(maxMsgSpoolUsage)} MB` : 'no limit',
  ]
}

/** Every version of one Event API, the newest first. */
export function eventApiPage(versions: readonly [CatalogueEventApi, ...CatalogueEventApi[]]): Page {
  const [newest] = versions
  return {
    title: newest.name,
    section: 'catalogue',
    content: html`${pageHead({
      title: newest.displayName === '' ? newest.name : newest.displayName,
      above: [
        { name: 'Catalogue', path: CATALOGUE_PATH },
        { name: 'Event APIs', path: EVENT_APIS_PATH },
      ],
      lede: newest.description === '' ? html`<code>${newest.id}</code>` : newest.description,
    })}
${versions.map(eventApiSection)}`,
  }
}

function eventApiSection(api: CatalogueEventApi): Html {
  const id = `v${api.version}`
  return html`<section id="${id}" class="version" aria-labelledby="${id}-title">
<div class="panel-head"><h2 id="${id}-title">Version ${api.version}</h2>
<p class="faint">${counted(api.channels.length, 'channel')}${api.viewpoint === 'provider' ? ', described from the provider’s side' : ''}${api.applicationDomainId === null ? '' : `, application domain ${api.applicationDomainId}`} <a href="${eventApiPath(api.id)}/documents/${segment(api.version)}" aria-label="AsyncAPI document of version ${api.version}">AsyncAPI document</a></p></div>
${table({
  caption: `Channels of version ${api.version}`,
  columns: [{ name: 'Channel' }, { name: 'Clients may' }, { name: 'Values of its parameters' }],
  rows: api.channels.map((channel, index) => ({
    id: `${id}-channel-${index}`,
    cells: [html`<code>${channel.name}</code>`, rights(channel), parameters(channel)],
  })),
  empty: 'It has no channel.',
})}
<h3>In product versions</h3>
${
  api.products.length === 0
    ? html`<p class="empty">No product holds this version.</p>`
    : html`<ul class="tiles">${api.products.map((product) => html`<li><a href="${productPath(product.id)}#v${product.version}">${product.id}</a> <span class="faint">${product.version}</span> ${stateChip(product.state)}</li>`)}</ul>`
}
</section>
`
}

type Channel = CatalogueEventApi['channels'][number]

function rights({ clientMayPublish, clientMaySubscribe }: Channel): Html {
  const may = [clientMayPublish ? 'publish' : null, clientMaySubscribe ? 'subscribe' : null].filter(
    (each) => each !== null,
  )
  return may.length === 0 ? html`<span class="faint">nothing</span>` : html`${may.join(' and ')}`
}

function parameters({ parameterEnums }: Channel): Html {
  const known = Object.entries(parameterEnums)
  if (known.length === 0) return html`<span class="faint">any</span>`
  return html`<div>${known.map(([name, values], index) => html`${index === 0 ? '' : '; '}<code>${name}</code>: ${values.join(', ')}`)}</div>`
}
