/** Runs work on the entries of a sequence, a few at a time. */

/** Rejects with the first error, after the work in progress has ended. */
export async function inParallel<T>(
  entries: Iterable<T> | AsyncIterable<T>,
  atOnce: number,
  work: (entry: T) => Promise<void>,
): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  const underway = new Set<Promise<void>>();
  for await (const entry of entries) {
    const running: Promise<void> = work(entry)
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => underway.delete(running));
    underway.add(running);
    if (underway.size >= atOnce) await Promise.race(underway);
    if (failure !== undefined) break;
  }
  await Promise.all(underway);
  if (failure !== undefined) throw failure.error;
}
