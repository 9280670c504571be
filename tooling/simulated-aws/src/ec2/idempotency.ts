/** Idempotent calls: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html. */

import { AwsError } from '../protocol/aws-error.js';

interface Done {
  readonly parameters: string;
  readonly replay: () => object;
}

const MAX_TOKEN = 64;

export class Idempotency {
  private readonly done = new Map<string, Done>();

  /**
   * Runs `perform`, and answers further calls with the same token by what it returned. Throws if a call with the same
   * token has other parameters. A call that fails does not use up its token.
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
    const earlier = this.done.get(key);
    if (earlier !== undefined && earlier.parameters !== text) {
      const message = `The same client token was used with other parameters: ${token}`;
      throw new AwsError('IdempotentParameterMismatch', message);
    }
    // The replay comes from a call with the same operation.
    if (earlier !== undefined) return earlier.replay() as O;
    const replay = perform();
    this.done.set(key, { parameters: text, replay });
    return replay();
  }
}
