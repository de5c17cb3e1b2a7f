// Keeps a page as it is on the server: reads `main` again while the tab is visible and changes what differs, in place.
// Pages work without it.

const AFTER_MS = 3000
const AT_MOST_MS = 60_000
/** A server that takes long is asked less often. */
const TIMES_AS_LONG_AS_IT_TOOK = 20

let etag = ''
let timer = 0
let failures = 0

const mainOf = () => document.querySelector('main[data-live]')

/** Attributes that belong to the reader, not to the server. */
const KEPT = new Set(['open'])

function changeAttributes(old, wanted) {
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name)
  }
  for (const { name, value } of wanted.attributes) {
    if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value)
  }
}

const isSame = (old, wanted) =>
  old.nodeType === wanted.nodeType && old.nodeName === wanted.nodeName && (old.id ?? '') === (wanted.id ?? '')

/** Elements with an id stay themselves wherever they move to among their siblings. */
function changeChildren(old, wanted) {
  const named = new Map([...old.children].filter((child) => child.id !== '').map((child) => [child.id, child]))
  let place = old.firstChild
  for (const next of [...wanted.childNodes]) {
    const known = next.id ? named.get(next.id) : undefined
    if (known !== undefined && known !== place && known.nodeName === next.nodeName) {
      old.insertBefore(known, place)
      place = known
    }
    if (place !== null && isSame(place, next)) {
      change(place, next)
      place = place.nextSibling
    } else {
      old.insertBefore(next, place)
    }
  }
  while (place !== null) {
    const after = place.nextSibling
    place.remove()
    place = after
  }
}

function change(old, wanted) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue
    return
  }
  if (old.isEqualNode(wanted)) return
  changeAttributes(old, wanted)
  // What somebody is typing, or has chosen, is theirs.
  if (old.matches('input, textarea, select')) return
  changeChildren(old, wanted)
}

function announce(text) {
  const announcer = document.getElementById('announcer')
  if (announcer !== null) announcer.textContent = text
}

async function renew() {
  const main = mainOf()
  if (main === null) return
  const startedMs = performance.now()
  try {
    const headers = { 'x-keymesh-part': 'main', ...(etag === '' ? {} : { 'if-none-match': etag }) }
    const answer = await fetch(location.href, { headers, cache: 'no-store', credentials: 'same-origin' })
    // The session ended, or what is shown is gone: the whole page says so, and is not read again.
    const isRefused = answer.status >= 400 && answer.status < 500 && answer.status !== 429
    if (isRefused) return location.reload()
    if (answer.status === 200) {
      etag = answer.headers.get('etag') ?? ''
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
      const wanted = page.querySelector('main')
      if (wanted !== null) {
        const saidBefore = main.dataset.live
        change(main, wanted)
        if (main.dataset.live !== undefined && main.dataset.live !== saidBefore) announce(main.dataset.live)
      }
    }
    failures = answer.ok || answer.status === 304 ? 0 : failures + 1
  } catch {
    failures += 1
  }
  document.documentElement.classList.toggle('is-stale', failures > 1)
  if (failures === 2) announce('The service does not answer; what is shown may be old.')
  const tookMs = performance.now() - startedMs
  plan(Math.min(AT_MOST_MS, Math.max(AFTER_MS, tookMs * TIMES_AS_LONG_AS_IT_TOOK) * 2 ** Math.min(failures, 5)))
}

function plan(afterMs) {
  clearTimeout(timer)
  if (document.visibilityState === 'visible' && mainOf() !== null) timer = setTimeout(renew, afterMs)
}

document.addEventListener('visibilitychange', () => plan(0))
plan(AFTER_MS)

// A button that is off can be reached and says why; pressing it does nothing.
document.addEventListener('click', (event) => {
  if (event.target instanceof Element && event.target.closest('[aria-disabled="true"]') !== null) event.preventDefault()
})
