//! `subject-system`: the same program with the allocator of the system's C library.

fn main() -> anyhow::Result<()> {
    subject::run()
}
