import { createRequire } from 'node:module';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { LIST_FORMATS, type ListFormat, type StoreContext } from './command-context.js';
import type * as Lists from './commands/lists.js';
import type { ListOptions } from './lists/list-command.js';
import type { StoreNeeds } from './open.js';

const load = createRequire(__filename);

/** Runs a command on the store; see `withStore`. */
export type OnStore = (command: (context: StoreContext) => Promise<void> | void, needs?: StoreNeeds) => Promise<void>;

export interface Outcome {
  /** Exit code of success; `run` sets the status of its remote command. */
  exitCode: number;
  /** Exit code of failures whose error has none of its own. */
  failureCode: number;
}

export interface FormatOption {
  readonly format: ListFormat;
}

export function formatOption(formats: readonly ListFormat[] = LIST_FORMATS): Option {
  return new Option('-o, --format <form>', 'form').choices(formats).default('pretty');
}

export function launcherOption(): Option {
  return new Option('--launcher <url>', 'web endpoint of a launcher; can be repeated (default: all)').argParser(
    (url: string, urls: readonly string[] | undefined) => [...(urls ?? []), url],
  );
}

/** An option of its own for a condition on a field. */
type ShortFilter = 'state' | 'label' | 'provider' | 'image';

const FILTER_HELP: Readonly<Record<ShortFilter, string>> = {
  state: 'these states, separated by commas',
  label: 'these labels, separated by commas',
  provider: 'these providers, separated by commas',
  image: 'these images, separated by commas',
};

/** Adds the options of every list, and those of the filters that it has. */
export function addListOptions(
  command: Command,
  {
    filters = [],
    detail = true,
    watch = true,
  }: { filters?: readonly ShortFilter[]; detail?: boolean; watch?: boolean },
): Command {
  if (detail) command.option('--detail', 'all columns', false);
  command.addOption(formatOption());
  for (const filter of filters) command.option(`--${filter} <names>`, FILTER_HELP[filter]);
  command
    .option('--filter <condition>', 'FIELD=VALUE or FIELD!=VALUE; can be repeated', repeated)
    .option('--sort <fields>', 'sort by fields, separated by commas; -FIELD reverses')
    .option('--fields <names>', 'these columns, separated by commas');
  if (watch) command.option('-w, --watch', 'show every change until Ctrl-C');
  return command;
}

/** Adds a command that lists records. `detail` is false if the short list has all columns. */
export function addList(
  program: Command,
  onStore: OnStore,
  name: Lists.ListName,
  filters: readonly ShortFilter[],
  detail = true,
): Command {
  return addListOptions(program.command(name), { filters, detail }).action((options: ListOptions) =>
    onStore((context) => (load('./commands/lists.js') as typeof Lists).list(context, name, options)),
  );
}

function repeated(text: string, texts: readonly string[] = []): readonly string[] {
  return [...texts, text];
}

export function example(command: Command, text: string): void {
  command.addHelpText('after', `\nExample:\n  $ ${text}`);
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`);
  };
}

export function seconds(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('Expected a number of seconds, 0 or more.');
}

const UNITS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 };

/** Parses `90`, `90s`, `15m`, `1h` or `2d`. Returns seconds. */
export function duration(text: string): number {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(text) ?? [];
  if (amount === undefined) throw new InvalidArgumentError('Expected a duration such as 90s, 15m, 1h or 2d.');
  return Number(amount) * (UNITS[unit] ?? 1);
}

/** Parses a time in ISO 8601 or in unix seconds. Returns unix seconds. */
export function pointInTime(text: string): number {
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  if (Number.isFinite(seconds)) return seconds;
  throw new InvalidArgumentError('Expected a time such as 2030-01-31T12:00:00Z, or unix seconds.');
}

export function addGatewayOptions(command: Command): Command {
  return command
    .option('--gateway <url>', 'address of the gateway (default: $NODEPOOL_GATEWAY)')
    .option('--token-file <file>', 'file with the token (default: $NODEPOOL_TOKEN_FILE or $NODEPOOL_TOKEN)');
}

/** Options of programs that lease nodes for other programs. */
export interface LeasedNodeOptions {
  readonly priority?: number;
  /** Seconds until the lease expires without renewal. */
  readonly lifetime: number;
  /** Limit of the wait for a node, seconds. */
  readonly timeout: number;
  /** Name for logins. */
  readonly user?: string;
  /** File with the private key. */
  readonly identity?: string;
}

type DescribedDefault = readonly [description: string, seconds: number];

export function addLeasedNodeOptions(
  command: Command,
  { lifetime, timeout }: { readonly lifetime: DescribedDefault; readonly timeout: DescribedDefault },
): Command {
  return command
    .option('--priority <n>', '0 to 999, lower is served first', wholeNumber(0, 999))
    .option('--lifetime <duration>', lifetime[0], duration, lifetime[1])
    .option('--timeout <duration>', timeout[0], duration, timeout[1])
    .option('--user <name>', 'login name (default: that of the node)')
    .option('--identity <file>', 'private key (default: those of ssh)');
}
