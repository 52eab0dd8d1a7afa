//! `subject`, with an allocator made for several threads, as Go's runtime brings one.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    subject::run()
}
