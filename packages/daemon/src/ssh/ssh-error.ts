/** A node cannot be reached with ssh, or ssh cannot run. */
export class SshError extends Error {
  readonly code = 'ssh';
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SshError';
  }
}
