export interface Step {
  event?: number | null;
  read?: number | null;
  t_ns: number | null;
  calls: { call: number; id?: string | null; name?: string | null; arguments?: { from: number; add: string } }[];
  dropped?: number[];
  errors?: string[];
  text_length?: number;
  note: string;
}
export interface StepsDocument {
  version: 1;
  tape: string;
  exchange: number;
  stream: number;
  choice: number;
  reference: { steps: Step[] };
  suspects: { name: string; says: string; fix: string; exact: boolean | null; unit: "event" | "read"; steps: Step[] }[];
}
