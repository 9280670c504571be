import { CST } from 'yaml';

/** Limit of levels. Generous, because each column of indentation counts as one. */
const MAX_DEPTH = 200;
/** Tokens that the lexer inserts; they are not in the text. */
const CONTROL: ReadonlySet<string> = new Set([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);

/**
 * Counts the depth of nesting while a lexer reads. Each token must pass `accepts` before the parser receives it,
 * because the parser recurses: a text of nothing but `[` would exhaust the stack.
 */
export class NestingDepth {
  private flow = 0;
  private block = 0;
  /** True until the first content of a line: only the spaces before it are indentation. */
  private isIndentation = true;
  private isScalar = false;
  private reached = 0;

  get offset(): number {
    return this.reached;
  }

  /** Advances over the next token. Returns false, without advancing, if the token is nested too deeply. */
  accepts(token: string): boolean {
    if (!this.isScalar && CONTROL.has(token)) {
      this.isScalar = token === CST.SCALAR;
      return true;
    }
    const type = this.isScalar ? 'scalar' : CST.tokenType(token);
    this.isScalar = false;
    if (type === 'newline') {
      this.block = 0;
      this.isIndentation = true;
    } else if (type === 'space') this.block += this.isIndentation ? token.length : 0;
    else if (type === 'flow-seq-start' || type === 'flow-map-start') this.flow++;
    else if (type === 'flow-seq-end' || type === 'flow-map-end') this.flow = Math.max(0, this.flow - 1);
    else if (type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind') {
      if (this.isIndentation) this.block++;
    } else this.isIndentation = false;
    if (this.flow + (this.flow === 0 ? this.block : 0) > MAX_DEPTH) return false;
    this.reached += token.length;
    return true;
  }
}
