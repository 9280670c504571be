/** Profiles the processor time of this process, to a file that Chrome's developer tools and speedscope open. */

import { writeFile } from 'node:fs/promises';
import { Session } from 'node:inspector';
import { join } from 'node:path';

export class CpuProfile {
  private constructor(private readonly session: Session) {}

  /** Begins to profile. Rejects when the process is profiled by somebody else. */
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
   * Ends the profile and writes it; resolves with the path. Rejects with an error that names the file when it cannot be
   * written. To be called once. `program` and `time`, milliseconds since the epoch, go into the name.
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
      // Paths and names of functions are nobody else's business.
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
