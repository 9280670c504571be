// Checks the English of comments, messages and Markdown: sentences with a subject, named actors, the usual verbs.

/** Start of a sentence: of the text, a paragraph or a list item, or after the end of another sentence. */
const SENTENCE_START = String.raw`(?:^\s*|\n\s*\n\s*|(?:^|\n)[ \t]*(?:[-*]|\d+\.)[ \t]+|(?<!\b(?:e\.g|i\.e|vs|etc))[.!?]["')\]]*\s+)`;

const CHECKS = [
  {
    pattern: new RegExp(
      String.raw`${SENTENCE_START}(What|Who|Whoever|Whether|Of|That|So\s+long|For\s+so\s+long)\b`,
      'g',
    ),
    advice: 'open the sentence with its subject or verb',
    exceptQuestions: true,
  },
  {
    pattern: new RegExp(String.raw`${SENTENCE_START}((?:True|False|Undefined|Null):)`, 'g'),
    advice: 'write "Returns X if Y" or "X if Y"',
  },
  {
    pattern: /\b((?:some|no|any|every)body|whoever|whomever)\b/gi,
    advice: 'name the actor: launcher, client, server, operator, …',
  },
  {
    pattern: /\b(by\s+others|others\s+(?:may|can|could|will|have|hold|wait|use|write|wrote|read|make|rely))\b/gi,
    advice: 'name the actor: launcher, client, server, operator, …',
  },
  {
    pattern: /\b(told|lend(?:s|ing)?\s+(?:\w+\s+)?a\s+hand|let(?:s|ting)?\s+(?:\w+\s+)?go|hears?\s+of|heard\s+of)\b/gi,
    advice: 'use the usual verb: notify, report, release, abandon, …',
  },
  {
    pattern: /\b((?:is|are|be|was|were|been)\s+gone)\b/gi,
    advice: 'use the usual verb: deleted, removed, lost, expired, …',
  },
  {
    pattern: /\b((?:take|takes|taken|taking)\s+up)\b/gi,
    advice: 'use the usual verb: resume, start, accept, …',
  },
  { pattern: /\b((?:of|by)\s+which)\b/gi, advice: 'write two sentences' },
];

/**
 * Returns the violations in a text, in order: `index` and `length` are their position, `found` is the matched text, and
 * `advice` says how to replace it. Code in backquotes is not checked.
 */
export function findings(text) {
  const prose = text.replaceAll(/```[^]*?```|`[^`\n]*`/g, (code) => code.replaceAll(/[^\n]/g, 'x'));
  const found = [];
  for (const { pattern, advice, exceptQuestions } of CHECKS) {
    for (const match of prose.matchAll(pattern)) {
      const index = match.index + match[0].length - match[1].length;
      if (exceptQuestions && /^[^.!?]*\?/.test(prose.slice(index))) continue;
      found.push({ index, length: match[1].length, found: match[1].replaceAll(/\s+/g, ' '), advice });
    }
  }
  return found.sort((a, b) => a.index - b.index);
}

/**
 * As `findings`, for the prose of a Markdown text without code, headings, comments and the addresses of links.
 */
export function markdownFindings(markdown) {
  const blank = (part) => part.replaceAll(/[^\n]/g, ' ');
  // Long runs of spaces would make the search for sentences slow.
  const mask = (part) => part.replaceAll(/[^\n]/g, 'x');
  const prose = markdown
    .replaceAll(/^( *)(```+|~~~+)[^]*?^ *\2/gm, mask)
    .replaceAll(/<!--[^]*?-->/g, mask)
    .replaceAll(/^#+ .*$/gm, blank)
    .replaceAll(/^\|.*\|\n(?=\|[ :|-]+\|$)/gm, blank)
    .replaceAll(/\]\([^)\s]*\)/g, (link) => `]${blank(link.slice(1))}`);
  // Each cell of a table is a separate text.
  const rows = /^\|.*\|$/gm;
  const cells = [...prose.matchAll(rows)].flatMap((row) =>
    [...row[0].matchAll(/[^|]+/g)].flatMap((cell) =>
      findings(cell[0]).map((each) => ({ ...each, index: row.index + cell.index + each.index })),
    ),
  );
  return [...findings(prose.replaceAll(rows, blank)), ...cells].sort((a, b) => a.index - b.index);
}

const MAX_COLUMNS = 120;
const DIRECTIVE = /^\s*(?:eslint|prettier-ignore|@ts-|#region|#endregion|global )/;
const LOG_METHODS = new Set(['debug', 'info', 'warn', 'warning', 'error', 'fatal', 'log']);

/** Groups line comments on consecutive lines, because sentences continue across lines. */
function groupsOf(comments) {
  const groups = [];
  for (const comment of comments) {
    const last = groups.at(-1)?.at(-1);
    const follows =
      last?.type === 'Line' &&
      comment.type === 'Line' &&
      comment.loc.start.line === last.loc.start.line + 1 &&
      comment.loc.start.column === last.loc.start.column;
    if (follows) groups.at(-1).push(comment);
    else groups.push([comment]);
  }
  return groups;
}

/** Replaces comment marks by spaces without changing positions. */
function commentProse(source) {
  return source
    .replaceAll(/^(\s*)\/\//gm, '$1  ')
    .replace(/^\/\*+/, (mark) => ' '.repeat(mark.length))
    .replace(/\*+\/$/, (mark) => ' '.repeat(mark.length))
    .replaceAll(/^(\s*)\*(?=\s|$)/gm, '$1 ');
}

/** Returns the message of a string literal or template, with `{}` for each expression. */
function messageOf(node) {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked ?? '').join('{}');
  if (node.type === 'BinaryExpression' && node.operator === '+') {
    const [left, right] = [messageOf(node.left), messageOf(node.right)];
    return left === undefined || right === undefined ? undefined : left + right;
  }
  return undefined;
}

export const plainEnglish = {
  meta: {
    type: 'suggestion',
    schema: [],
    messages: {
      words: '"{{found}}": {{advice}}',
      columns: `The comment has more than ${MAX_COLUMNS} columns`,
    },
  },
  create(context) {
    const { sourceCode } = context;
    function checkMessages(nodes) {
      for (const node of nodes) {
        for (const { found, advice } of findings(messageOf(node) ?? '')) {
          context.report({ node, messageId: 'words', data: { found, advice } });
        }
      }
    }
    return {
      Program() {
        for (const group of groupsOf(sourceCode.getAllComments())) {
          const [start, end] = [group[0].range[0], group.at(-1).range[1]];
          if (DIRECTIVE.test(group[0].value)) continue;
          for (const { index, length, found, advice } of findings(commentProse(sourceCode.text.slice(start, end)))) {
            const from = sourceCode.getLocFromIndex(start + index);
            const to = sourceCode.getLocFromIndex(start + index + length);
            context.report({ loc: { start: from, end: to }, messageId: 'words', data: { found, advice } });
          }
          for (let line = group[0].loc.start.line; line <= group.at(-1).loc.end.line; line++) {
            const text = sourceCode.lines[line - 1];
            if (text.length <= MAX_COLUMNS || text.includes('://')) continue;
            context.report({ loc: { line, column: MAX_COLUMNS }, messageId: 'columns' });
          }
        }
      },
      NewExpression(node) {
        if (node.callee.type === 'Identifier' && node.callee.name.endsWith('Error')) checkMessages(node.arguments);
      },
      CallExpression({ callee, arguments: args }) {
        if (callee.type !== 'MemberExpression' || !LOG_METHODS.has(callee.property.name)) return;
        const object = callee.object.property?.name ?? callee.object.name;
        if (/log(ger)?$/i.test(object ?? '')) checkMessages(args);
      },
      VariableDeclarator({ id, init }) {
        if (id.name === 'message' && init !== null) checkMessages([init]);
      },
    };
  },
};
