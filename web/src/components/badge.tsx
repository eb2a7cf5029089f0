// Small marks whose meaning is never in the colour alone.

export function Severity({ is }: { is: "error" | "warning" | "info" | string }) {
  return <span class={`badge severity-${is}`}>{is}</span>;
}

export function Code({ code, name }: { code: string; name?: string }) {
  return (
    <span class="code">
      <code>{code}</code>
      {name ? ` ${name}` : ""}
    </span>
  );
}
