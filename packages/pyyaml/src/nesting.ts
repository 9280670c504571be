import { CST, Lexer } from 'yaml';

/** Columns of indentation count as levels, so this is generous. */
const MAX_DEPTH = 200;
/** Tokens that the lexer puts between the parts of the text. */
const CONTROL: ReadonlySet<string> = new Set([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);

/**
 * Returns the offset at which a text is nested deeper than any configuration, undefined if it is not. To be called before
 * parsing: the parser recurses, and a text of nothing but `[` would end the process.
 */
export function excessiveNesting(text: string): number | undefined {
  let offset = 0;
  let flow = 0;
  let block = 0;
  let isScalar = false;
  for (const token of new Lexer().lex(text)) {
    if (!isScalar && CONTROL.has(token)) {
      isScalar = token === CST.SCALAR;
      continue;
    }
    const type = isScalar ? 'scalar' : CST.tokenType(token);
    isScalar = false;
    if (type === 'newline') block = 0;
    else if (type === 'space') block += token.length;
    else if (type === 'flow-seq-start' || type === 'flow-map-start') flow++;
    else if (type === 'flow-seq-end' || type === 'flow-map-end') flow = Math.max(0, flow - 1);
    else if (type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind') block++;
    if (flow + (flow === 0 ? block : 0) > MAX_DEPTH) return offset;
    offset += token.length;
  }
  return undefined;
}
