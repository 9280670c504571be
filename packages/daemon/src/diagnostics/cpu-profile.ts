/** Profiles the CPU time of this process and writes a file for Chrome's developer tools and speedscope. */

import { writeFile } from 'node:fs/promises';
import { Session } from 'node:inspector';
import { join } from 'node:path';

export class CpuProfile {
  private constructor(private readonly session: Session) {}

  /** Starts a profile. Rejects if another client already profiles the process. */
  static async start(): Promise<CpuProfile> {
    const session = new Session();
    session.connect();
    try {
      await post(session, 'Profiler.enable');
      await post(session, 'Profiler.start');
    } catch (error) {
      session.disconnect();
      throw error;
    }
    return new CpuProfile(session);
  }

  /**
   * Ends the profile, writes it and resolves with its path; call it once. Rejects with an error that names the file if
   * it cannot be written. `program` and `time` (milliseconds since the epoch) are part of the file name.
   */
  async save(folder: string, program: string, time: number): Promise<string> {
    const stamp = new Date(time).toISOString().replace(/[-:]/g, '').replace('T', '-').slice(0, 15);
    const file = join(folder, `${program}-${process.pid}-${stamp}.cpuprofile`);
    let profile: unknown;
    try {
      profile = (await post(this.session, 'Profiler.stop')).profile;
    } finally {
      this.session.disconnect();
    }
    try {
      // Only the owner may read paths and names of functions.
      await writeFile(file, JSON.stringify(profile), { mode: 0o600 });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(
        `the profile ${file} cannot be written: ${reason}; check the folder's permissions and free space`,
        {
          cause: error,
        },
      );
    }
    return file;
  }
}

type Method = 'Profiler.enable' | 'Profiler.start' | 'Profiler.stop';

function post(session: Session, method: Method): Promise<{ readonly profile?: unknown }> {
  return new Promise((resolve, reject) => {
    session.post(method, (error: Error | null, result?: object) => {
      if (error === null) resolve(result ?? {});
      else reject(new Error(`${method} failed: ${error.message}`, { cause: error }));
    });
  });
}
