/** Authenticates calls, and reads the credentials again if they are refused. */

import { AuthError } from '@nodepool/core';
import type { GoogleAuth } from 'google-auth-library';
import { errorOf, isRefusal, type Attempted } from '../errors.js';

export class Credentials {
  private auth: GoogleAuth;
  private readonly place: string;

  /** `read` returns a new object, which reads the credentials and gets a token when the first call needs them. */
  constructor(
    private readonly read: () => GoogleAuth,
    file: string | undefined,
  ) {
    this.auth = read();
    this.place = file === undefined ? 'the application default credentials' : `the credentials in ${file}`;
  }

  /**
   * Makes a call. A refused call had no effect; it is repeated once, with credentials that are read again and a new
   * token: Google may refuse a token before its expiry, and the operator may have replaced the credentials. Rejects
   * with a `DriverError`.
   */
  async call<T>(attempted: Attempted, work: (auth: GoogleAuth) => Promise<T>): Promise<T> {
    const { auth } = this;
    try {
      return await work(auth);
    } catch (error) {
      const failure = errorOf(attempted, error);
      if (!isRefusal(error, failure)) throw failure;
    }
    // All calls that were refused with the same credentials share the new ones.
    if (this.auth === auth) this.auth = this.read();
    try {
      return await work(this.auth);
    } catch (error) {
      const failure = errorOf(attempted, error);
      if (!isRefusal(error, failure)) throw failure;
      const remedy = `replace ${this.place}, which the driver reads again without a restart`;
      throw new AuthError(`${failure.message}; ${remedy}`, { cause: error });
    }
  }
}
