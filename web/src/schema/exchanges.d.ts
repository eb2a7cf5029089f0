export interface ExchangesDocument {
  version: 1;
  exchanges: {
    tape: string;
    exchange: number;
    at: string | null;
    t_ns: number | null;
    provider: string | null;
    model: string | null;
    dialect: string | null;
    method: string;
    target: string;
    status: number | null;
    duration_ns: number | null;
    first_event_ns: number | null;
    tokens: { input: number | null; output: number | null } | null;
    calls: number;
    ending: string | null;
    open: boolean;
    findings: number;
    codes: string[];
    worst: {
      code: string;
      name: string;
      severity: "error" | "warning" | "info";
      blame: string | null;
      confidence: string;
    } | null;
    thread: number;
    before: number | null;
    marks: ("retry" | "loop" | "unanswered" | "lost-call" | "orphan-result")[];
  }[];
}
