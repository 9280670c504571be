/** Negotiates the format of an answer by the `Accept` header (RFC 9110, section 12.5.1). */

export type AnswerFormat = 'json' | 'text';

/**
 * Returns `json` if the header names JSON (or `application/*`) and does not prefer plain text; otherwise `text`, e.g.
 * for browsers and `curl` (`*\/*`).
 */
export function answerFormat(accept: string | undefined): AnswerFormat {
  if (accept === undefined) return 'text';
  let json = 0;
  let text: number | undefined;
  let anything = 0;
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const quality = qualityOf(parameters);
    if (type === 'application/json' || type === 'application/*') json = Math.max(json, quality);
    else if (type === 'text/plain' || type === 'text/*') text = Math.max(text ?? 0, quality);
    else if (type === '*/*') anything = Math.max(anything, quality);
  }
  return json > 0 && json >= (text ?? anything) ? 'json' : 'text';
}

function qualityOf(parameters: readonly string[]): number {
  const given = parameters.find((parameter) => parameter.startsWith('q='));
  if (given === undefined) return 1;
  const quality = Number(given.slice(2));
  return quality >= 0 && quality <= 1 ? quality : 0;
}
