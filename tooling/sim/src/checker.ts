/** Checks every event against the rules, remembers the last steps, and stops at the first violation. */

import type { CloudInstance, InstanceSpec } from '@nodepool/driver-example';
import type { SimulatedZooKeeperServer } from '@nodepool/zookeeper/simulated';
import type { TransactionOp } from '@nodepool/zookeeper';
import type { CloudObserver } from './cloud-view.js';
import { Observed, type Commit, type SeenChange, type UploadChange } from './observed.js';
import type { SimulatedProcess } from '@nodepool/simulated-process';
import { RULES_OF_STEPS } from './rules/index.js';
import type { CheckerView, Rule, SeenListing } from './rules/rule.js';
import { reviewOf, textOf } from './rules/values.js';

/** A violation of a rule. */
export interface Violation {
  /**
   * Number of the rule in the design: `S` for safety, `L` for liveness, `O` for order of service, `M` for static
   * machines, `W` for writes. `X` is a failure that no rule covers.
   */
  readonly rule: string;
  /** Milliseconds since the start. */
  readonly at: number;
  readonly what: string;
}

/** Number of steps before a violation that are kept. */
const REMEMBERED_STEPS = 60;

export interface CheckerOptions {
  /** Called for every step. */
  readonly onStep?: ((step: string) => void) | undefined;
  /** The only rule to check. Default: all rules. */
  readonly only?: string | undefined;
  /** Rules to ignore. */
  readonly without?: ReadonlySet<string> | undefined;
}

export class Checker implements CloudObserver {
  readonly observed: Observed;
  violation: Violation | undefined;
  private readonly rules: readonly Rule[];
  private readonly steps: string[] = [];
  private stepCount = 0;
  private closed = false;

  constructor(
    server: SimulatedZooKeeperServer,
    private readonly view: Omit<CheckerView, 'observed'>,
    private readonly options: CheckerOptions,
  ) {
    this.observed = new Observed(server);
    const all: CheckerView = { ...view, observed: this.observed };
    this.rules = RULES_OF_STEPS.map((rule) => rule(all));
    server.onCommit((changes) => this.committed(this.observed.apply(changes.map(({ path }) => path))));
  }

  /** The last steps, oldest first. */
  get lastSteps(): readonly string[] {
    return this.steps;
  }

  /** Number of steps. */
  get count(): number {
    return this.stepCount;
  }

  /** Ignores events after the end of a run. */
  close(): void {
    this.closed = true;
  }

  /** Records an action. */
  step(what: string): void {
    if (this.closed) return;
    const line = `${String(this.view.now()).padStart(8)} ${what}`;
    this.stepCount += 1;
    this.steps.push(line);
    if (this.steps.length > REMEMBERED_STEPS) this.steps.shift();
    this.options.onStep?.(line);
  }

  report(rule: string, what: string): void {
    const { only = rule, without } = this.options;
    if (only !== rule || without?.has(rule) === true) return;
    this.violation ??= { rule, at: this.view.now(), what };
  }

  /** Notifies the rules that an older state of ZooKeeper was restored. */
  restored(): void {
    this.observed.reset();
    for (const rule of this.rules) rule.forget?.();
  }

  writing(process: SimulatedProcess, ops: readonly TransactionOp[]): void {
    for (const rule of this.rules) this.verify(rule, rule.writing?.(ops, process.name), process);
  }

  creating(process: SimulatedProcess, spec: InstanceSpec): void {
    this.step(`${process.name} asks the cloud for ${spec.name}, attempt ${spec.tags['nodepool_launch_attempt'] ?? ''}`);
    for (const rule of this.rules) this.verify(rule, rule.creating?.(spec, process.name), process);
  }

  created(process: SimulatedProcess, spec: InstanceSpec): void {
    for (const rule of this.rules) this.verify(rule, rule.created?.(spec), process);
  }

  deleting(process: SimulatedProcess, instance: CloudInstance): void {
    this.step(`${process.name} tells the cloud to delete ${instance.id}, ${instance.name}`);
    for (const rule of this.rules) this.verify(rule, rule.deleting?.(instance), process);
  }

  deletingImage(process: SimulatedProcess, image: string): void {
    this.step(`${process.name} tells the cloud to delete image ${image}`);
    for (const rule of this.rules) this.verify(rule, rule.deletingImage?.(image), process);
  }

  listed(listing: SeenListing): void {
    for (const rule of this.rules) rule.listed?.(listing);
  }

  private committed(commit: Commit): void {
    for (const change of commit.nodes) this.step(describe('node', change));
    for (const change of commit.requests) this.step(describe('request', change));
    for (const change of commit.uploads) this.step(describeUpload(change));
    for (const rule of this.rules) this.verify(rule, rule.committed?.(commit));
  }

  private verify(rule: Rule, flaw: string | undefined, process?: SimulatedProcess): void {
    if (flaw !== undefined) this.report(rule.number, process === undefined ? flaw : `${flaw} (${process.name})`);
  }
}

/** Record fields that steps describe when they change. */
const DESCRIBED_FIELDS = [
  'node_types',
  'provider',
  'pool',
  'relative_priority',
  'state',
  'allocated_to',
  'external_id',
  'declined_by',
  'nodes',
  'comment',
] as const;

function describeUpload({ path, after, byHand }: UploadChange): string {
  const { stage, promoted, reason } = reviewOf(after) ?? {};
  const what = after === undefined ? 'is removed' : `is ${textOf(after['state'])}`;
  const review = stage === undefined ? '' : `, ${textOf(stage)} (${textOf(reason)}), promoted ${textOf(promoted)}`;
  return `upload ${path} ${what}${review}${byHand ? ' by hand' : ''}`;
}

function describe(kind: string, { id, before, after }: SeenChange): string {
  if (after === undefined) return `${kind} ${id} removed`;
  const parts = [`${kind} ${id}`, before === undefined ? 'made:' : ''];
  for (const field of DESCRIBED_FIELDS) {
    const is = after.data[field];
    if (is !== undefined && textOf(is) !== textOf(before?.data[field])) parts.push(`${field}=${textOf(is)}`);
  }
  if (after.contender !== before?.contender)
    parts.push(after.holder === undefined ? 'unlocked' : `locked by ${after.holder}`);
  return parts.filter((part) => part !== '').join(' ');
}
