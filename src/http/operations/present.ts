type Present<Given> = { [Key in keyof Given]?: Exclude<Given[Key], undefined> }

/** Without what was not asked for. */
export function present<Given extends object>(given: Given): Present<Given> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Present<Given>
}
