/** What a successful answer said of an object; a client that got it knows that it was so between the two times. */
export interface Write {
  /** Below the registrations: `app-1/credentials/key-1`. What is deleted takes with it whatever is below. */
  readonly path: string
  readonly effect: 'create' | 'change' | 'delete'
  /** What the object was after it; null when it was gone. */
  readonly content: string | null
  /** The ETag that the client named. */
  readonly ifMatch: string | null
  readonly startedMs: number
  readonly endedMs: number
}

/**
 * What is wrong with an object as it is found at the end, when these writes are all that succeeded: with any order of
 * them that keeps to the times, the end must be explained. Empty when it is.
 */
export function contradictions(path: string, found: string | null, writes: readonly Write[]): readonly string[] {
  const own = writes.filter((write) => write.path === path)
  const kept = own.filter((write) => write.effect !== 'delete')
  const ends = writes.filter((write) => write.effect === 'delete' && isAtOrAbove(write.path, path))
  const problems = [...lostUpdates(own)]
  if (found === null) {
    const orphan = kept.find((write) => !ends.some((end) => end.endedMs > write.startedMs))
    if (orphan !== undefined) problems.push(`${path} is gone, and nobody deleted it after ${orphan.content}`)
  } else {
    const last = kept.filter((write) => write.content === found)
    if (last.length === 0) problems.push(`${path} is ${found}, which no answer said`)
    else if (last.every((write) => isOver(write, [...kept, ...ends]))) {
      problems.push(`${path} is ${found}, which was changed since`)
    }
  }
  // Deletes of what is above are not counted, so only what stays has a count.
  if (ends.every((end) => end.path === path)) {
    const count = own.filter(({ effect }) => effect === 'create').length - ends.length
    if (count !== (found === null ? 0 : 1)) problems.push(`${path} was created ${count} times more than deleted`)
  }
  return problems
}

const isAtOrAbove = (above: string, path: string): boolean => path === above || path.startsWith(`${above}/`)

/** Whether something else happened to the object certainly after this. */
const isOver = (write: Write, others: readonly Write[]): boolean =>
  others.some((other) => other !== write && other.startedMs > write.endedMs)

/** Contents never come back, so an ETag is of one state, and one write at most can have followed it. */
function lostUpdates(own: readonly Write[]): readonly string[] {
  const named = own.flatMap(({ ifMatch }) => (ifMatch === null ? [] : [ifMatch]))
  return named
    .filter((tag, index) => named.indexOf(tag) !== index)
    .map((tag) => `${own[0]?.path} was written twice after ${tag}`)
}
