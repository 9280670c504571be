/** Words and scripts in the command line that sshd passes to the user's shell. */

export function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Returns a command line that runs a script with a POSIX shell, whatever the shell of the user is. */
export function posix(script: string): string {
  return `exec /bin/sh -c ${quote(script)}`;
}
