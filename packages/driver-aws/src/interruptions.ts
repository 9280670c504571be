/**
 * Notices of spot interruptions: EventBridge sends them to a queue two minutes before AWS takes an instance away. A
 * message is deleted once the records of the nodes are written, so that SQS delivers it again after a crash.
 *
 * Source: "Spot Instance interruption notices" and "EC2 instance rebalance recommendations" of EC2's user guide.
 */

import { isJsonObject, objectAt, sleep, stringAt, type Call, type Clock, type JsonValue } from '@nodepool/core';
import type { Connection } from './client/connection.js';
import { loadSqs } from './client/libraries.js';

/** Time for which one call waits for messages (SQS: at most 20 seconds). */
const WAIT_SECONDS = 20;
/** Maximum number of messages per call (SQS). */
const MESSAGES = 10;
/** Time for which a notice is remembered (ms): terminated instances are listed for an hour. */
const REMEMBER_MS = 7_200_000;
/** Time from a notice to the end of the instance (ms). */
const NOTICE_MS = 120_000;
/** Interval after a failed call (ms). */
const RETRY_MS = 10_000;

export const INTERRUPTION = 'EC2 Spot Instance Interruption Warning';

/** A notice of an instance, as it was received. */
interface Notice {
  /** Time at which AWS ends the instance, in milliseconds since the epoch. */
  readonly endsAt: number;
  /** `Clock.monotonic` milliseconds. */
  readonly receivedAt: number;
}

export class Interruptions {
  private readonly notices = new Map<string, Notice>();
  private isFailing = false;

  constructor(
    private readonly connection: Connection,
    private readonly queue: string | undefined,
    private readonly clock: Clock,
  ) {}

  /**
   * Returns the time at which AWS takes the instance away or has done so, in milliseconds since the epoch; undefined
   * without a notice.
   */
  endOf(instanceId: string): number | undefined {
    return this.notices.get(instanceId)?.endsAt;
  }

  /**
   * Receives notices until the signal aborts. Resolves at once without a queue. `checkInstances` resolves once the
   * records of the nodes agree with the notices.
   */
  async watch(makeCall: () => Call, checkInstances: () => Promise<void>): Promise<void> {
    const { queue } = this;
    if (queue === undefined) return;
    for (let call = makeCall(); !call.signal.aborted; call = makeCall()) {
      try {
        await this.receive(queue, call, checkInstances);
        if (this.isFailing) call.log.info('The queue of spot interruptions answers again');
        this.isFailing = false;
      } catch (error) {
        await this.pause(error, call);
      }
    }
  }

  private async pause(error: unknown, { signal, log }: Call): Promise<void> {
    if (signal.aborted) return;
    if (!this.isFailing) {
      log.warn('Could not process the queue of spot interruptions; they are noticed in the list of instances', {
        error,
      });
    }
    this.isFailing = true;
    await sleep(this.clock, RETRY_MS, signal).catch(() => undefined);
  }

  private async receive(QueueUrl: string, call: Call, checkInstances: () => Promise<void>): Promise<void> {
    const { Messages = [] } = await this.connection.send(
      { service: 'sqs', action: 'ReceiveMessage', timeoutMs: (WAIT_SECONDS + 30) * 1000 },
      call,
      (sdk, options) =>
        sdk.sqs.send(
          new (loadSqs().ReceiveMessageCommand)({
            QueueUrl,
            WaitTimeSeconds: WAIT_SECONDS,
            MaxNumberOfMessages: MESSAGES,
          }),
          options,
        ),
    );
    this.forgetOld();
    if (Messages.length === 0) return;
    const found = Messages.flatMap(({ Body }) => interruptionIn(Body ?? '', this.clock.now()) ?? []);
    for (const { instanceId, endsAt } of found) {
      if (this.notices.has(instanceId)) continue;
      this.notices.set(instanceId, { endsAt, receivedAt: this.clock.monotonic() });
      call.log.warn('AWS takes a spot instance away', {
        external_id: instanceId,
        ends: new Date(endsAt).toISOString(),
      });
    }
    if (found.length > 0) await checkInstances();
    const Entries = Messages.flatMap(({ ReceiptHandle }, index) =>
      ReceiptHandle === undefined ? [] : [{ Id: String(index), ReceiptHandle }],
    );
    await this.connection.send({ service: 'sqs', action: 'DeleteMessageBatch' }, call, (sdk, options) =>
      sdk.sqs.send(new (loadSqs().DeleteMessageBatchCommand)({ QueueUrl, Entries }), options),
    );
  }

  private forgetOld(): void {
    const now = this.clock.monotonic();
    for (const [id, { receivedAt }] of this.notices) if (now - receivedAt > REMEMBER_MS) this.notices.delete(id);
  }
}

/** An interruption that an event announces. */
export interface Interruption {
  readonly instanceId: string;
  /** Milliseconds since the epoch. */
  readonly endsAt: number;
}

/** Returns the interruption that an event announces; undefined for other messages. */
export function interruptionIn(body: string, now: number): Interruption | undefined {
  let event: JsonValue;
  try {
    event = JSON.parse(body) as JsonValue;
  } catch {
    return undefined;
  }
  if (!isJsonObject(event) || stringAt(event, 'detail-type') !== INTERRUPTION) return undefined;
  const instanceId = stringAt(objectAt(event, 'detail') ?? {}, 'instance-id');
  if (instanceId === undefined) return undefined;
  const sentAt = Date.parse(stringAt(event, 'time') ?? '');
  return { instanceId, endsAt: (Number.isNaN(sentAt) ? now : sentAt) + NOTICE_MS };
}
