export default function ArgumentEditor({ name }: { name: string }) {
  return <>{name}</>;
}
