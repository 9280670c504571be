/** Request classes in line under fair shares: by tenant, then in the order of service within the tenant. */

import { insert, remove, type ClassLine } from './class-line.js';
import { compareClasses, type RequestClass } from './open-requests.js';
import type { ServiceOrder } from '../fairness/service-order.js';

export class FairLine implements ClassLine {
  /** Each list is sorted when a class enters. The use of the tenants changes later, so `shift` compares it. */
  private readonly byTenant = new Map<string | null, RequestClass[]>();

  constructor(private readonly order: ServiceOrder) {}

  shift(): RequestClass | undefined {
    let next: RequestClass[] | undefined;
    for (const classes of this.byTenant.values())
      if (next === undefined || this.isBefore(classes, next)) next = classes;
    const first = next?.shift();
    if (first === undefined) return undefined;
    if (next?.length === 0) this.byTenant.delete(first.request.tenant_name);
    this.order.consider(first);
    return first;
  }

  enter(requestClass: RequestClass): void {
    const { tenant_name: tenant } = requestClass.request;
    const classes = this.byTenant.get(tenant);
    if (classes === undefined) this.byTenant.set(tenant, [requestClass]);
    else insert(classes, requestClass, (a, b) => this.compare(a, b));
  }

  leave(requestClass: RequestClass): boolean {
    const { tenant_name: tenant } = requestClass.request;
    const classes = this.byTenant.get(tenant);
    if (classes === undefined || !remove(classes, requestClass)) return false;
    if (classes.length === 0) this.byTenant.delete(tenant);
    return true;
  }

  reset(classes: Iterable<RequestClass>): void {
    this.byTenant.clear();
    for (const each of classes) this.enter(each);
  }

  private isBefore([a]: readonly RequestClass[], [b]: readonly RequestClass[]): boolean {
    return a !== undefined && b !== undefined && this.compare(a, b) < 0;
  }

  private compare(a: RequestClass, b: RequestClass): number {
    return compareClasses(a, b, this.order);
  }
}
