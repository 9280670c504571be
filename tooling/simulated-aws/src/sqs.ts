/** Operations of SQS: standard queues with long polling and visibility timeouts. */

import { createHash } from 'node:crypto';
import type {
  ChangeMessageVisibilityRequest,
  CreateQueueRequest,
  DeleteMessageBatchRequest,
  DeleteMessageBatchResult,
  DeleteMessageRequest,
  GetQueueAttributesRequest,
  GetQueueAttributesResult,
  GetQueueUrlRequest,
  GetQueueUrlResult,
  ListQueuesRequest,
  ListQueuesResult,
  Message as ShownMessage,
  ReceiveMessageRequest,
  ReceiveMessageResult,
  SendMessageRequest,
  SendMessageResult,
  SetQueueAttributesRequest,
} from '@aws-sdk/client-sqs';
import { sleep } from '@nodepool/core';
import { operation, type AwsCall, type Handlers } from './call.js';
import { AwsError } from './protocol/aws-error.js';
import type { CloudEvent, World } from './region.js';
import { ACCOUNT, QUEUE, REGION } from './settings.js';

interface Message {
  readonly id: string;
  readonly body: string;
  readonly sentAt: number;
  visibleAt: number;
  receipt: string | undefined;
  received: number;
}

interface Queue {
  readonly name: string;
  readonly region: string;
  readonly attributes: Record<string, string>;
  messages: Message[];
}

type SettableAttributes = Readonly<Partial<Record<string, string>>>;

const MAX_RECEIVED = 10;
const MAX_WAIT_SECONDS = 20;
const MAX_VISIBILITY_SECONDS = 43_200;
const DEFAULT_VISIBILITY_SECONDS = '30';
const MAX_BATCH = 10;
const MAX_BODY_BYTES = 1_048_576;
const SETTABLE = [
  ...['VisibilityTimeout', 'MessageRetentionPeriod', 'ReceiveMessageWaitTimeSeconds', 'DelaySeconds', 'Policy'],
  ...['MaximumMessageSize', 'SqsManagedSseEnabled', 'RedrivePolicy', 'KmsMasterKeyId'],
];

export class Queues {
  private readonly queues = new Map<string, Queue>();
  private waiting: (() => void)[] = [];

  constructor(
    private readonly world: World,
    private readonly url: () => string,
  ) {
    this.create(QUEUE, REGION, {});
  }

  urlOf(name: string): string {
    return `${this.url()}/${ACCOUNT}/${name}`;
  }

  count(name: string): number {
    return this.queues.get(name)?.messages.length ?? 0;
  }

  send(name: string, body: string, delayMs = 0): Message {
    const queue = this.queues.get(name);
    if (queue === undefined) throw nonExistent();
    const now = this.world.clock.now();
    const message: Message = {
      ...{ id: uuid(this.world.random.uuidHex()), body, sentAt: now },
      ...{ visibleAt: now + delayMs, receipt: undefined, received: 0 },
    };
    queue.messages.push(message);
    const waiting = this.waiting;
    this.waiting = [];
    for (const wake of waiting) wake();
    return message;
  }

  /** Sends an event in the form of EventBridge. */
  deliver(name: string, region: string, event: CloudEvent): void {
    const body = {
      ...{ version: '0', id: uuid(this.world.random.uuidHex()), 'detail-type': event.type, source: 'aws.ec2' },
      ...{ account: ACCOUNT, time: new Date(event.at).toISOString().replace(/\.\d+Z$/, 'Z'), region },
      ...{ resources: event.resources, detail: event.detail },
    };
    if (this.queues.has(name)) this.send(name, JSON.stringify(body));
  }

  handlers(): Handlers {
    return {
      CreateQueue: operation<CreateQueueRequest, object>(({ QueueName: name = '', Attributes: attributes }, call) => {
        if (!/^[\w-]{1,80}$/.test(name)) {
          throw new AwsError(
            'InvalidParameterValue',
            'Can only include alphanumeric characters, hyphens, or underscores.',
          );
        }
        if (!this.queues.has(name)) this.create(name, call.region, attributes ?? {});
        return { QueueUrl: this.urlOf(name) };
      }),
      DeleteQueue: operation<{ readonly QueueUrl?: string }, object>((input, call) => {
        this.queues.delete(this.require(input.QueueUrl, call).name);
        return {};
      }),
      GetQueueUrl: operation<GetQueueUrlRequest, GetQueueUrlResult>(({ QueueName: name = '' }, call) => {
        if (this.queues.get(name)?.region !== call.region) throw nonExistent();
        return { QueueUrl: this.urlOf(name) };
      }),
      ListQueues: operation<ListQueuesRequest, ListQueuesResult>(({ QueueNamePrefix: prefix = '' }, call) => {
        const found = [...this.queues.values()].filter(
          ({ name, region }) => region === call.region && name.startsWith(prefix),
        );
        return { QueueUrls: found.map(({ name }) => this.urlOf(name)) };
      }),
      GetQueueAttributes: operation<GetQueueAttributesRequest, GetQueueAttributesResult>((input, call) =>
        this.attributes(this.require(input.QueueUrl, call), input.AttributeNames ?? []),
      ),
      SetQueueAttributes: operation<SetQueueAttributesRequest, object>((input, call) => {
        Object.assign(this.require(input.QueueUrl, call).attributes, checkAttributes(input.Attributes ?? {}));
        return {};
      }),
      SendMessage: operation<SendMessageRequest, SendMessageResult>((input, call) => {
        const { MessageBody: body = '', DelaySeconds: delay = 0 } = input;
        if (body === '' || Buffer.byteLength(body) > MAX_BODY_BYTES) {
          throw new AwsError(
            'InvalidParameterValue',
            `One or more parameters are invalid. The message has a wrong size.`,
          );
        }
        const message = this.send(this.require(input.QueueUrl, call).name, body, delay * 1000);
        return { MessageId: message.id, MD5OfMessageBody: md5(body) };
      }),
      ReceiveMessage: operation<ReceiveMessageRequest, ReceiveMessageResult>((input, call) =>
        this.receive(input, call),
      ),
      DeleteMessage: operation<DeleteMessageRequest, object>((input, call) => {
        this.remove(this.require(input.QueueUrl, call), input.ReceiptHandle);
        return {};
      }),
      DeleteMessageBatch: operation<DeleteMessageBatchRequest, DeleteMessageBatchResult>((input, call) => {
        const queue = this.require(input.QueueUrl, call);
        return this.removeBatch(queue, input.Entries ?? []);
      }),
      ChangeMessageVisibility: operation<ChangeMessageVisibilityRequest, object>((input, call) => {
        const queue = this.require(input.QueueUrl, call);
        const seconds = between('VisibilityTimeout', input.VisibilityTimeout ?? 0, 0, MAX_VISIBILITY_SECONDS);
        const message = queue.messages.find(({ receipt }) => receipt === input.ReceiptHandle);
        if (message === undefined) throw invalidReceipt(input.ReceiptHandle);
        message.visibleAt = call.now + seconds * 1000;
        return {};
      }),
      PurgeQueue: operation<{ readonly QueueUrl?: string }, object>((input, call) => {
        this.require(input.QueueUrl, call).messages = [];
        return {};
      }),
    };
  }

  private create(name: string, region: string, attributes: SettableAttributes): void {
    this.queues.set(name, { name, region, attributes: checkAttributes(attributes), messages: [] });
  }

  private require(url: string | undefined, { region }: AwsCall): Queue {
    const name = /\/\d{12}\/([\w-]+)$/.exec(url ?? '')?.[1];
    const queue = name === undefined ? undefined : this.queues.get(name);
    if (queue?.region !== region) throw nonExistent();
    return queue;
  }

  private attributes(queue: Queue, names: readonly string[]): GetQueueAttributesResult {
    const now = this.world.clock.now();
    const hidden = queue.messages.filter(({ visibleAt }) => visibleAt > now);
    const all: Readonly<Record<string, string>> = {
      VisibilityTimeout: DEFAULT_VISIBILITY_SECONDS,
      ...queue.attributes,
      QueueArn: `arn:aws:sqs:${queue.region}:${ACCOUNT}:${queue.name}`,
      ApproximateNumberOfMessages: String(queue.messages.length - hidden.length),
      ApproximateNumberOfMessagesNotVisible: String(hidden.length),
    };
    return {
      Attributes: Object.fromEntries(
        Object.entries(all).filter(([name]) => names.includes('All') || names.includes(name)),
      ),
    };
  }

  /** Returns visible messages, after waiting for the first one. */
  private async receive(input: ReceiveMessageRequest, call: AwsCall): Promise<ReceiveMessageResult> {
    const { clock } = this.world;
    const queue = this.require(input.QueueUrl, call);
    const count = between('MaxNumberOfMessages', input.MaxNumberOfMessages ?? 1, 1, MAX_RECEIVED);
    const standardWait = Number(queue.attributes['ReceiveMessageWaitTimeSeconds'] ?? '0');
    const wait = between('WaitTimeSeconds', input.WaitTimeSeconds ?? standardWait, 0, MAX_WAIT_SECONDS);
    const standardTimeout = Number(queue.attributes['VisibilityTimeout'] ?? DEFAULT_VISIBILITY_SECONDS);
    const timeout = between('VisibilityTimeout', input.VisibilityTimeout ?? standardTimeout, 0, MAX_VISIBILITY_SECONDS);
    const until = call.now + wait * 1000;
    for (;;) {
      this.world.timeline.settle();
      const now = clock.now();
      const visible = queue.messages.filter(({ visibleAt }) => visibleAt <= now).slice(0, count);
      if (visible.length === 0 && now < until) {
        const next = Math.min(until, this.world.timeline.nextAt, ...queue.messages.map(({ visibleAt }) => visibleAt));
        await this.nextChange(Math.max(1, next - now), call.signal);
        continue;
      }
      for (const message of visible) {
        message.visibleAt = now + timeout * 1000;
        message.receipt = Buffer.from(`${message.id} ${this.world.random.uuidHex()}`).toString('base64');
        message.received += 1;
      }
      // SQS answers without a list if there are no messages.
      return visible.length === 0 ? {} : { Messages: visible.map((message) => shown(message, input)) };
    }
  }

  /** Resolves after a message has been sent, or after the time. */
  private async nextChange(ms: number, signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const sent = new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      await Promise.race([sent, sleep(this.world.clock, ms, AbortSignal.any([signal, ended.signal]))]);
    } finally {
      ended.abort();
    }
  }

  /** Removes a received message. An old receipt of another reception removes nothing. */
  private remove(queue: Queue, receipt: string | undefined): void {
    const id = Buffer.from(receipt ?? '', 'base64')
      .toString()
      .split(' ')[0];
    if (id === undefined || !/^[0-9a-f-]{36}$/.test(id)) throw invalidReceipt(receipt);
    queue.messages = queue.messages.filter((message) => message.receipt !== receipt);
  }

  private removeBatch(
    queue: Queue,
    entries: NonNullable<DeleteMessageBatchRequest['Entries']>,
  ): DeleteMessageBatchResult {
    if (entries.length === 0)
      throw new AwsError(
        'AWS.SimpleQueueService.EmptyBatchRequest',
        'There should be at least one entry in the request.',
      );
    if (entries.length > MAX_BATCH) {
      throw new AwsError(
        'AWS.SimpleQueueService.TooManyEntriesInBatchRequest',
        `Maximum number of entries per request are ${MAX_BATCH}.`,
      );
    }
    if (new Set(entries.map(({ Id }) => Id)).size < entries.length) {
      throw new AwsError(
        'AWS.SimpleQueueService.BatchEntryIdsNotDistinct',
        'Two or more batch entries have the same Id.',
      );
    }
    const Successful: { Id: string }[] = [];
    const Failed: NonNullable<DeleteMessageBatchResult['Failed']> = [];
    for (const { Id = '', ReceiptHandle: receipt } of entries) {
      try {
        this.remove(queue, receipt);
        Successful.push({ Id });
      } catch (error) {
        if (!(error instanceof AwsError)) throw error;
        Failed.push({ Id, Code: error.code, Message: error.message, SenderFault: true });
      }
    }
    return { Successful, Failed };
  }
}

function checkAttributes(attributes: SettableAttributes): Record<string, string> {
  const unknown = Object.keys(attributes).find((name) => !SETTABLE.includes(name));
  if (unknown !== undefined) throw new AwsError('InvalidAttributeName', `Unknown Attribute ${unknown}.`);
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, value ?? '']));
}

function shown(message: Message, input: ReceiveMessageRequest): ShownMessage {
  // Older clients use the former name of the parameter.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const names: readonly string[] = [...(input.MessageSystemAttributeNames ?? []), ...(input.AttributeNames ?? [])];
  const all: Readonly<Record<string, string>> = {
    SentTimestamp: String(message.sentAt),
    ApproximateReceiveCount: String(message.received),
    ApproximateFirstReceiveTimestamp: String(message.sentAt),
  };
  const wanted = Object.entries(all).filter(([name]) => names.includes('All') || names.includes(name));
  return {
    ...{ MessageId: message.id, ReceiptHandle: message.receipt, Body: message.body, MD5OfBody: md5(message.body) },
    ...(wanted.length === 0 ? {} : { Attributes: Object.fromEntries(wanted) }),
  };
}

function between(name: string, value: number, min: number, max: number): number {
  if (value >= min && value <= max) return value;
  const message = `Value ${value} for parameter ${name} is invalid. Reason: Must be between ${min} and ${max}.`;
  throw new AwsError('InvalidParameterValue', message);
}

function nonExistent(): AwsError {
  return new AwsError('QueueDoesNotExist', 'The specified queue does not exist.');
}

function invalidReceipt(receipt: string | undefined): AwsError {
  return new AwsError('ReceiptHandleIsInvalid', `The input receipt handle "${receipt}" is not a valid receipt handle.`);
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}

function uuid(hex: string): string {
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
