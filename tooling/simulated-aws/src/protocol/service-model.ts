/** Amazon's published definitions of a service: operations and types. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Service = 'ec2' | 's3' | 'ebs' | 'service-quotas' | 'sqs' | 'sts';

export const SERVICES: readonly Service[] = ['ec2', 's3', 'ebs', 'service-quotas', 'sqs', 'sts'];

/** `sqs-query` is SQS in its former protocol, which older clients use. */
type Definitions = Service | 'sqs-query';

/** The use of a type, e.g. as a member of another one. */
export interface ShapeRef {
  readonly shape: string;
  readonly locationName?: string;
  /** Name in requests of the protocol `ec2`. */
  readonly queryName?: string;
  readonly location?: 'uri' | 'querystring' | 'header' | 'headers' | 'statusCode';
  readonly timestampFormat?: TimestampFormat;
}

export type TimestampFormat = 'iso8601' | 'rfc822' | 'unixTimestamp';

/** A type; see the schema of botocore's models. */
export interface Shape {
  readonly type:
    | 'structure'
    | 'list'
    | 'map'
    | 'string'
    | 'character'
    | 'boolean'
    | 'integer'
    | 'long'
    | 'float'
    | 'double'
    | 'timestamp'
    | 'blob';
  readonly members?: Readonly<Record<string, ShapeRef>>;
  readonly required?: readonly string[];
  readonly member?: ShapeRef;
  readonly key?: ShapeRef;
  readonly value?: ShapeRef;
  readonly enum?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  readonly pattern?: string;
  readonly locationName?: string;
  readonly flattened?: boolean;
  /** Member that is the whole body. */
  readonly payload?: string;
  readonly timestampFormat?: TimestampFormat;
  readonly error?: { readonly code?: string; readonly httpStatusCode?: number };
}

export interface Operation {
  readonly name: string;
  readonly http: { readonly method: string; readonly requestUri: string; readonly responseCode?: number };
  readonly input?: ShapeRef;
  readonly output?: ShapeRef & { readonly resultWrapper?: string };
}

interface Document {
  readonly metadata: {
    readonly apiVersion: string;
    readonly protocol: Protocol;
    readonly jsonVersion?: string;
    readonly targetPrefix?: string;
    readonly xmlNamespace?: string;
  };
  readonly operations: Readonly<Record<string, Operation>>;
  readonly shapes: Readonly<Record<string, Shape>>;
}

export type Protocol = 'ec2' | 'query' | 'json' | 'rest-json' | 'rest-xml';

const EMPTY: Shape = { type: 'structure', members: {} };

export class ServiceModel {
  private static readonly loaded = new Map<Definitions, ServiceModel>();
  private readonly document: Document;

  /** Returns the definitions of a service, which all clouds share. */
  static of(service: Definitions): ServiceModel {
    const model = ServiceModel.loaded.get(service) ?? new ServiceModel(service);
    ServiceModel.loaded.set(service, model);
    return model;
  }

  private constructor(readonly service: Definitions) {
    const file = join(__dirname, '..', '..', 'definitions', `${service}.json`);
    this.document = JSON.parse(readFileSync(file, 'utf8')) as Document;
  }

  get metadata(): Document['metadata'] {
    return this.document.metadata;
  }

  get operations(): readonly Operation[] {
    return Object.values(this.document.operations);
  }

  operation(name: string): Operation | undefined {
    return Object.hasOwn(this.document.operations, name) ? this.document.operations[name] : undefined;
  }

  /** Returns a type. Throws if Amazon has not published it. */
  shape(ref: ShapeRef | undefined): Shape {
    if (ref === undefined) return EMPTY;
    const shape = this.document.shapes[ref.shape];
    if (shape === undefined) throw new Error(`${ref.shape} is not in the published definitions`);
    return shape;
  }

  /** Returns the status that the definitions give to an error, e.g. 429 of `TooManyRequestsException`. */
  errorStatus(code: string): number | undefined {
    return this.document.shapes[code]?.error?.httpStatusCode;
  }
}
