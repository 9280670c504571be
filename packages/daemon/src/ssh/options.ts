/** The options with which ssh is called, and the quoting of remote commands. */

/** Exit status of ssh after errors of its own. A command may also end with it. */
export const SSH_FAILED = 255;

/** Quotes a word for POSIX shells. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Returns a command line that runs a script with a POSIX shell, whatever the shell of the user is. */
export function posix(script: string): string {
  return `exec /bin/sh -c ${quote(script)}`;
}

/**
 * Returns options with which ssh trusts the host keys of one file only, and reads no configuration file: nothing is
 * forwarded, shared, proxied or executed here. `identity` is the file with the private key; undefined for those of the
 * agent and of `~/.ssh`.
 */
export function sshOptions(knownHosts: string, identity: string | undefined): readonly string[] {
  return [
    ...['-F', 'none'],
    ...option('BatchMode', 'yes'),
    ...option('StrictHostKeyChecking', 'yes'),
    ...option('UserKnownHostsFile', `"${knownHosts.replaceAll('%', '%%')}"`),
    ...option('GlobalKnownHostsFile', '/dev/null'),
    ...option('UpdateHostKeys', 'no'),
    ...option('VerifyHostKeyDNS', 'no'),
    ...option('ForwardAgent', 'no'),
    ...option('ConnectTimeout', '30'),
    ...option('ServerAliveInterval', '15'),
    ...option('LogLevel', 'ERROR'),
    ...(identity === undefined ? [] : ['-i', identity, ...option('IdentitiesOnly', 'yes')]),
  ];
}

function option(name: string, value: string): readonly string[] {
  return ['-o', `${name}=${value}`];
}
