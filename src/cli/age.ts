/** `12 s ago`, for a person. */
export function ageOf(atMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - atMs) / 1000))
  if (seconds < 90) return `${seconds} s ago`
  const minutes = Math.round(seconds / 60)
  return minutes < 90 ? `${minutes} min ago` : `${Math.round(minutes / 60)} h ago`
}
