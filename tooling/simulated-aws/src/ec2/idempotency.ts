/** Idempotent calls: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html. */

import { AwsError } from '../protocol/aws-error.js';

interface Call {
  readonly parameters: string;
  /** Undefined if the call failed. */
  readonly replay: (() => object) | undefined;
}

const MAX_TOKEN = 64;

export class Idempotency {
  private readonly earlier = new Map<string, Call>();

  /**
   * Runs `perform`, and answers further calls with the same token by what it returned. Throws if a call with the same
   * token has other parameters. A call that failed can be repeated, but not with other parameters: EC2 answers so after
   * a lack of capacity (https://github.com/ubicloud/ubicloud/pull/5898).
   */
  run<O extends object>(
    operation: string,
    input: { readonly ClientToken?: string | undefined },
    perform: () => () => O,
  ): O {
    const { ClientToken: token, ...parameters } = input;
    if (token === undefined || token === '') return perform()();
    if (token.length > MAX_TOKEN || !/^[\x20-\x7e]*$/.test(token)) {
      throw new AwsError('InvalidParameterValue', `The client token must have at most ${MAX_TOKEN} ASCII characters`);
    }
    const key = `${operation} ${token}`;
    const text = JSON.stringify(parameters);
    const earlier = this.earlier.get(key);
    if (earlier !== undefined && earlier.parameters !== text) {
      const message = `The same client token was used with other parameters: ${token}`;
      throw new AwsError('IdempotentParameterMismatch', message);
    }
    // The replay comes from a call with the same operation.
    if (earlier?.replay !== undefined) return earlier.replay() as O;
    this.earlier.set(key, { parameters: text, replay: undefined });
    const replay = perform();
    this.earlier.set(key, { parameters: text, replay });
    return replay();
  }
}
