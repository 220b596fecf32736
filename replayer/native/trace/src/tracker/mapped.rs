//! Files that are mapped: what of them was touched, and how long the mapping holds them open.

use crate::call::{Args, Call, Outcome, TouchedPages};
use crate::error::TraceError;
use crate::mappings::PAGE;
use crate::order::Access;
use crate::tracker::file::UsedFile;
use crate::tracker::{Disposition, Operands, Tracker};
use replayer_ops::Op;

const MAP_SHARED: i64 = 1;

impl Tracker {
    /// A file was mapped: as in the kernel, it stays open until that ends.
    pub(crate) fn mapped(&mut self, call: &Call<'_>, id: u32, args: &Args<'_>) {
        let range = call.outcome.value().zip(args.size);
        let (Some(range), Some(mut mappings)) = (range, self.tasks.mappings(call.task)) else {
            return;
        };
        let is_shared = args.flags.unwrap_or(0) & MAP_SHARED != 0;
        mappings.map(range, args.offset.unwrap_or(0), (id, is_shared));
        drop(mappings);
        self.files.hold(id);
    }

    /// What was mapped in a range is so no more, or elsewhere.
    pub(crate) fn unmapped(
        &mut self,
        call: &Call<'_>,
        from: (i64, i64),
        to: Option<(i64, i64)>,
    ) -> Result<(), TraceError> {
        let Some(mut mappings) = self.tasks.mappings(call.task) else {
            return Ok(());
        };
        let gone = match to {
            Some(to) => mappings.remap(from, to),
            None => mappings.unmap(from),
        };
        drop(mappings);
        self.let_go(call, gone)
    }

    /// Pages were touched: a read of them through the mapping, to the end of the file at most.
    pub(crate) fn touched(
        &mut self,
        call: &Call<'_>,
        touched: &TouchedPages,
    ) -> Result<Disposition, TraceError> {
        let Some((used, offset, is_shared)) = self.mapped_at(call.task, touched) else {
            self.counts.out_of_scope.add(call.name);
            return Ok(Disposition::Other);
        };
        let size = touched.size.min(touched.file_size.saturating_sub(offset));
        let outcome = Outcome::Value(size);
        let call = &Call { outcome, ..*call };
        let args = &Args {
            offset: Some(offset),
            size: Some(size),
            ..Args::default()
        };
        let used = self.record_foreign_changes(call, Op::MmapRead, used, args)?;
        self.emit(call, Op::MmapRead, Operands::of_file(used.slot), args)?;
        self.order.file(used.slot, Access::Read);
        self.learn_read(used, args.offset, (size, size));
        let pages = &mut self.counts.pages;
        pages.touched += touched.faults;
        pages.files.extend(used.node);
        if is_shared {
            pages.written += touched.writes;
        }
        Ok(Disposition::Event)
    }

    /// The file that is mapped where pages were touched, where in it that is, and whether others see what is written.
    fn mapped_at(
        &mut self,
        task: u64,
        touched: &TouchedPages,
    ) -> Option<((u32, UsedFile), i64, bool)> {
        let (id, offset, is_shared) = self.tasks.mappings(task)?.at(touched.address)?;
        let (first, last) = touched.pages;
        let fits = (first..=last).contains(&(offset / PAGE)) && offset < touched.file_size;
        let used = UsedFile::of(self.files.get(id).filter(|_| fits)?);
        Some(((id, used), offset, is_shared))
    }
}
