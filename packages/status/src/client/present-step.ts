/** Appends the present step, which the stream sends as a separate member, to the history. */

export function withPresentStep(members: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { history, presentStep } = members;
  if (!Array.isArray(presentStep)) return members;
  if (Array.isArray(history))
    return { ...members, history: [...(history as unknown[]), ...(presentStep as unknown[])] };
  if (typeof history !== 'object' || history === null || !('samples' in history)) return members;
  const samples = [...(history.samples as unknown[]), ...(presentStep as unknown[])];
  return { ...members, history: { ...history, samples } };
}
