import { CST } from 'yaml';

/** Columns of indentation count as levels, so this is generous. */
const MAX_DEPTH = 200;
/** Tokens that the lexer puts between the parts of the text. */
const CONTROL: ReadonlySet<string> = new Set([CST.DOCUMENT, CST.FLOW_END, CST.SCALAR]);

/**
 * The depth of nesting at the place that a lexer has reached. To be asked about each token before the parser gets it: the
 * parser recurses, and a text of nothing but `[` would end the process.
 */
export class NestingDepth {
  private flow = 0;
  private block = 0;
  private isScalar = false;
  private reached = 0;

  /** Offset of the next token. */
  get offset(): number {
    return this.reached;
  }

  /** Takes the next token. Returns false, staying before it, if it is nested deeper than any configuration. */
  accepts(token: string): boolean {
    if (!this.isScalar && CONTROL.has(token)) {
      this.isScalar = token === CST.SCALAR;
      return true;
    }
    const type = this.isScalar ? 'scalar' : CST.tokenType(token);
    this.isScalar = false;
    if (type === 'newline') this.block = 0;
    else if (type === 'space') this.block += token.length;
    else if (type === 'flow-seq-start' || type === 'flow-map-start') this.flow++;
    else if (type === 'flow-seq-end' || type === 'flow-map-end') this.flow = Math.max(0, this.flow - 1);
    else if (type === 'seq-item-ind' || type === 'explicit-key-ind' || type === 'map-value-ind') this.block++;
    if (this.flow + (this.flow === 0 ? this.block : 0) > MAX_DEPTH) return false;
    this.reached += token.length;
    return true;
  }
}
