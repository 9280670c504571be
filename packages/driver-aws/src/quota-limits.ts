/** Reads the limits of the account from Service Quotas. */

import { QuotaInformation, type Call } from '@nodepool/core';
import type { ServiceQuota } from '@aws-sdk/client-service-quotas';
import type { Volume } from '@aws-sdk/client-ec2';
import { loadQuotas } from './client/libraries.js';
import { allPages } from './client/pages.js';
import { tagsIn } from './client/ec2.js';
import { lacksPermission } from './errors.js';
import { IOPS_CODES, STORAGE_CODES, VCPU_CODES, volumeResources } from './quota.js';
import type { ProviderSession } from './session.js';

const GIB_PER_TIB = 1024;
/** e.g. `Running Dedicated m5 Hosts`. */
const HOSTS = /^Running Dedicated (\S+) Hosts$/;

/** Limits without the rights to read them. */
const UNLIMITED = QuotaInformation.limit({});

export class QuotaLimits {
  /** Services whose quotas the account may not list, so that each is reported once. */
  private readonly reported = new Set<string>();

  constructor(private readonly session: ProviderSession) {}

  /** Resolves with the limits; those that the account may not read are unlimited. */
  async read(call: Call): Promise<QuotaInformation> {
    const [instances, volumes, used] = await Promise.all([
      this.quotas('ec2', call),
      this.quotas('ebs', call),
      this.otherVolumes(call),
    ]);
    const limits: Record<string, number> = {};
    for (const { QuotaCode: code = '', QuotaName: name = '', Value: value } of [...instances, ...volumes]) {
      if (value === undefined) continue;
      const host = HOSTS.exec(name)?.[1];
      if (VCPU_CODES.has(code)) limits[code] = value;
      else if (STORAGE_CODES.has(code)) limits[code] = value * GIB_PER_TIB - (used[code] ?? 0);
      else if (IOPS_CODES.has(code)) limits[code] = value - (used[code] ?? 0);
      else if (host !== undefined) limits[`hosts-${host}`] = value;
    }
    return Object.keys(limits).length === 0
      ? UNLIMITED
      : QuotaInformation.limit(Object.fromEntries(Object.entries(limits).map(([code, at]) => [code, Math.max(at, 0)])));
  }

  private async quotas(service: 'ec2' | 'ebs', call: Call): Promise<readonly ServiceQuota[]> {
    const { connection } = this.session;
    return this.unlessForbidden(`servicequotas:ListServiceQuotas`, service, call, () =>
      allPages(async (NextToken) => {
        const page = await connection.send(
          { service: 'service-quotas', action: 'ListServiceQuotas' },
          call,
          (sdk, options) =>
            sdk.quotas.send(
              new (loadQuotas().ListServiceQuotasCommand)({ ServiceCode: service, NextToken, MaxResults: 100 }),
              options,
            ),
        );
        return { items: page.Quotas ?? [], next: page.NextToken };
      }),
    );
  }

  /**
   * Resolves with the use of volumes that belong to no node of this provider. Volumes of nodes are counted with their
   * nodes.
   */
  private async otherVolumes(call: Call): Promise<Readonly<Record<string, number>>> {
    const { ec2, config } = this.session;
    const volumes = await this.unlessForbidden('ec2:DescribeVolumes', 'volumes', call, () => ec2.volumes(call, false));
    const used: Record<string, number> = {};
    for (const volume of volumes) {
      if (tagsIn(volume.Tags)['nodepool_provider_name'] === config.name) continue;
      for (const [code, amount] of Object.entries(useOf(volume))) used[code] = (used[code] ?? 0) + amount;
    }
    return used;
  }

  private async unlessForbidden<T>(
    action: string,
    what: string,
    call: Call,
    read: () => Promise<readonly T[]>,
  ): Promise<readonly T[]> {
    try {
      const result = await read();
      this.reported.delete(what);
      return result;
    } catch (error) {
      if (!lacksPermission(error)) throw error;
      if (!this.reported.has(what)) {
        call.log.warn(`Could not read quotas; the IAM policy lacks ${action}, so limits of AWS are not known`, {
          what,
          error,
        });
      }
      this.reported.add(what);
      return [];
    }
  }
}

function useOf({ VolumeType: type, Size: size, Iops: iops }: Volume): Readonly<Record<string, number>> {
  return volumeResources({ type, size, iops });
}
