export interface Step {
  event: number | null;
  t_ns: number | null;
  calls: { id: string | null; name: string | null; arguments: string }[];
  errors: string[];
  note: string;
}
export interface StepsDocument {
  version: 1;
  tape: string;
  exchange: number;
  unit: "event" | "read";
  reference: { steps: Step[] };
  suspects: { name: string; says: string; fix: string; exact: boolean; steps: Step[] }[];
}
