/** The life of one node. */

import type { Node, NodeState } from '@nodepool/core';
import { Life, NO_ATTEMPTS, type Attempt, type NodeFacts, type NodePhase } from './life.js';
import type { LaunchStage } from '../facts/timeline-recorder.js';

/** Phases of states after the launch. */
const PHASES: Readonly<Partial<Record<NodeState, NodePhase>>> = {
  ready: 'ready',
  'in-use': 'in-use',
  hold: 'held',
  used: 'deleting',
  failed: 'deleting',
  aborted: 'deleting',
  deleting: 'deleting',
  deleted: 'deleting',
};

/** Age (ms) at first sight from which on a node counts as launched by another process. */
const SEEN_LATE_MS = 10_000;
const MAX_ATTEMPTS = 10;

export class NodeLife extends Life {
  /** Launch attempts, oldest first. */
  attempts = NO_ATTEMPTS;
  /** Id of the pool that launched the node, as recorded last. */
  launcher: string | null = null;
  private launching = false;

  /** True while this launcher launches the node. */
  get isLaunching(): boolean {
    return this.launching;
  }

  constructor(
    public facts: NodeFacts,
    created: number,
  ) {
    super(created);
  }

  /** Returns the life of a node that is seen for the first time. */
  static of(node: Node, now: number): NodeLife {
    const created = Math.min(now, (node.created_time ?? node.state_time) * 1000 || now);
    const life = new NodeLife(factsOf(node, node.allocated_to), created);
    if (now - created <= SEEN_LATE_MS) return life;
    life.enter(created, 'elsewhere', undefined, 'before this launcher saw it');
    const phase = PHASES[node.state];
    if (phase !== undefined) life.enter(Math.min(now, node.state_time * 1000), phase, undefined);
    life.skipClosed();
    return life;
  }

  /** Enters a stage of the launch by this launcher. */
  stage(now: number, pool: string, stage: LaunchStage, reason: string | undefined): void {
    this.launching = true;
    this.enter(now, stage === 'launched' ? 'handover' : stage, pool, reason);
  }

  attempted(attempt: Attempt): void {
    this.attempts = this.attempts.concat(attempt).slice(-MAX_ATTEMPTS);
    if (attempt.error !== undefined && attempt.error.code !== 'aborted') this.fail(attempt.error.message);
  }

  /**
   * Applies a change of the record. `awaited` is true if its request is not fulfilled yet; `pool` is the pool of this
   * launcher that has accepted the request.
   */
  recorded(now: number, node: Node, awaited: boolean, pool: string | undefined): void {
    const { facts } = this;
    this.launcher = node.launcher;
    const request = node.allocated_to ?? facts.request;
    const isPlaced = facts.labels === node.type && facts.provider === node.provider && facts.pool === node.pool;
    const isSame = isPlaced && facts.resources === node.resources;
    if (!isSame || facts.request !== request) this.facts = factsOf(node, request);
    const phase = PHASES[node.state];
    if (phase === undefined) {
      if (!this.launching) this.enter(now, pool === undefined ? 'elsewhere' : 'accepted', pool);
      return;
    }
    // The node is ready before the other nodes of its request.
    if (phase === 'ready' && awaited && this.launching) return;
    this.launching = false;
    this.enter(now, phase, undefined, node.interruption?.reason);
  }

  /** Enters the phase of use because its request was fulfilled. */
  handedOver(now: number, requestId: string): void {
    if (this.phase !== 'handover') return;
    this.launching = false;
    this.facts = { ...this.facts, request: requestId };
    this.enter(now, 'ready', undefined);
  }
}

function factsOf({ id, type: labels, provider, pool, resources }: Node, request: string | null): NodeFacts {
  return { id, labels, provider, pool, request, resources };
}
