/** Operations of Service Quotas. */

import type {
  GetServiceQuotaRequest,
  GetServiceQuotaResponse,
  ListServiceQuotasRequest,
  ListServiceQuotasResponse,
  ListServicesRequest,
  ListServicesResponse,
  ServiceQuota,
} from '@aws-sdk/client-service-quotas';
import { operation, type AwsCall, type Handlers } from './call.js';
import { AwsError } from './protocol/aws-error.js';
import type { Quota } from './quotas.js';
import type { Region } from './region.js';
import { ACCOUNT } from './settings.js';

const SERVICES: Readonly<Record<string, string>> = {
  ec2: 'Amazon Elastic Compute Cloud (Amazon EC2)',
  ebs: 'Amazon Elastic Block Store (Amazon EBS)',
};
/** Maximum number of quotas per page. */
const MAX_PAGE = 100;

export function quotaHandlers(regionOf: (call: AwsCall) => Region): Handlers {
  const list =
    (read: (region: Region, service: string) => readonly Quota[]) =>
    (input: ListServiceQuotasRequest, call: AwsCall): ListServiceQuotasResponse => {
      const region = regionOf(call);
      const quotas = read(region, requireService(input.ServiceCode));
      const { page, NextToken } = pageOf(quotas, input, region.settings.pageSize);
      return { Quotas: page.map((quota) => shown(region, quota)), NextToken };
    };
  const get =
    (read: (region: Region, service: string) => readonly Quota[]) =>
    (input: GetServiceQuotaRequest, call: AwsCall): GetServiceQuotaResponse => {
      const region = regionOf(call);
      const quota = read(region, requireService(input.ServiceCode)).find(({ code }) => code === input.QuotaCode);
      if (quota === undefined) throw noSuchResource();
      return { Quota: shown(region, quota) };
    };
  const current = (region: Region, service: string): readonly Quota[] => region.quotas.list(service);
  const defaults = (region: Region, service: string): readonly Quota[] => region.quotas.defaults(service);
  return {
    ListServiceQuotas: operation(list(current)),
    ListAWSDefaultServiceQuotas: operation(list(defaults)),
    GetServiceQuota: operation(get(current)),
    GetAWSDefaultServiceQuota: operation(get(defaults)),
    ListServices: operation<ListServicesRequest, ListServicesResponse>((input, call) => {
      const services = Object.entries(SERVICES).map(([ServiceCode, ServiceName]) => ({ ServiceCode, ServiceName }));
      const { page, NextToken } = pageOf(services, input, regionOf(call).settings.pageSize);
      return { Services: [...page], NextToken };
    }),
  };
}

function requireService(service: string | undefined): string {
  if (service === undefined || !Object.hasOwn(SERVICES, service)) throw noSuchResource();
  return service;
}

function noSuchResource(): AwsError {
  return new AwsError('NoSuchResourceException', 'The request failed because the specified resource does not exist.');
}

function pageOf<T>(
  items: readonly T[],
  { MaxResults, NextToken: token }: ListServiceQuotasRequest | ListServicesRequest,
  defaultSize: number,
): { readonly page: readonly T[]; readonly NextToken: string | undefined } {
  const start = token === undefined ? 0 : Number(Buffer.from(token, 'base64').toString());
  if (!Number.isInteger(start)) throw new AwsError('InvalidPaginationTokenException', 'Invalid input was provided.');
  const end = start + Math.min(MaxResults ?? MAX_PAGE, MAX_PAGE, defaultSize);
  const NextToken = end < items.length ? Buffer.from(String(end)).toString('base64') : undefined;
  return { page: items.slice(start, end), NextToken };
}

function shown(region: Region, { service, code, name, value }: Quota): ServiceQuota {
  return {
    ...{ ServiceCode: service, ServiceName: SERVICES[service], QuotaCode: code, QuotaName: name, Value: value },
    QuotaArn: region.arn('servicequotas', `${service}/${code}`, ACCOUNT),
    ...{ Unit: 'None', Adjustable: true, GlobalQuota: false },
  };
}
