/** Splits a command of the configuration into words by the quoting rules of a shell, without any expansion. */

/** Matches one piece of a word: a quoted string, an escaped character, or plain text. */
const PIECE = /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^\s'"\\]+)/gsy;

/** Splits the text. Throws an `Error` if a quote is not closed. */
export function splitWords(text: string): readonly string[] {
  const words: string[] = [];
  let position = 0;
  while (position < text.length) {
    const space = /\s+/y;
    space.lastIndex = position;
    if (space.test(text)) {
      position = space.lastIndex;
      continue;
    }
    let word = '';
    PIECE.lastIndex = position;
    for (let piece = PIECE.exec(text); piece !== null; piece = PIECE.exec(text)) {
      const [, single, double, escaped, plain] = piece;
      word += single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped ?? plain ?? '';
      position = PIECE.lastIndex;
    }
    if (position < text.length && !/\s/.test(text.charAt(position))) {
      throw new Error(`the command ${JSON.stringify(text)} has a quote that is not closed`);
    }
    words.push(word);
  }
  return words;
}
