//! Calls on extended attributes, of open files and by path.

use super::lane_replay::{Act, LaneReplay, Replayed};
use crate::ops::Op;
use crate::replay::program::{CallBatch, ReplayCall, ScheduledCall, Subject};
use crate::sys::files::{fgetxattr, flistxattr, fremovexattr, fsetxattr};
use crate::sys::{ACCESS_LIST, Answer, Kernel, Links, access_list};
use std::ffi::CStr;
use std::os::fd::RawFd;

/// What an attribute belongs to, as the kernel is told it.
#[derive(Clone, Copy)]
enum On<'a> {
    File(RawFd),
    Path(&'a CStr, Links),
}

/// An op by what it works on: a file, a path whose last link is kept, one where it is followed.
type Ops = [Op; 3];

const GET: Ops = [Op::Fgetxattr, Op::Lgetxattr, Op::Getxattr];
const SET: Ops = [Op::Fsetxattr, Op::Lsetxattr, Op::Setxattr];
const REMOVE: Ops = [Op::Fremovexattr, Op::Lremovexattr, Op::Removexattr];
const LIST: Ops = [Op::Flistxattr, Op::Llistxattr, Op::Listxattr];

impl<K: Kernel> LaneReplay<'_, K> {
    #[inline(never)]
    pub(super) fn enact_attribute(
        &mut self,
        batch: &CallBatch,
        scheduled: &ScheduledCall,
    ) -> Replayed {
        let names = &self.performance.names;
        match &scheduled.call {
            ReplayCall::Getxattr { on, name, size } => {
                let name = names.text(batch, *name);
                let buffer = self.scratch.first(*size);
                self.attribute(scheduled, *on, GET, |k, on| match on {
                    On::File(file) => fgetxattr(file, &name, buffer),
                    On::Path(path, links) => k.getxattr((path, links), &name, buffer),
                })
            }
            ReplayCall::Setxattr {
                on,
                name,
                size,
                flags,
            } => {
                let name = names.text(batch, *name);
                let (value, flags) = (self.setting.written.first(*size), *flags);
                self.attribute(scheduled, *on, SET, |k, on| match on {
                    On::File(file) => fsetxattr(file, &name, value, flags),
                    On::Path(path, links) => k.setxattr((path, links), &name, (value, flags)),
                })
            }
            ReplayCall::SetList { on, mode, flags } => {
                let (list, flags) = (access_list(*mode), *flags);
                self.attribute(scheduled, *on, SET, |k, on| match on {
                    On::File(file) => fsetxattr(file, ACCESS_LIST, &list, flags),
                    On::Path(path, links) => k.setxattr((path, links), ACCESS_LIST, (&list, flags)),
                })
            }
            ReplayCall::Removexattr { on, name } => {
                let name = names.text(batch, *name);
                self.attribute(scheduled, *on, REMOVE, |k, on| match on {
                    On::File(file) => fremovexattr(file, &name),
                    On::Path(path, links) => k.removexattr((path, links), &name),
                })
            }
            ReplayCall::Listxattr { on, size } => {
                let buffer = self.scratch.first(*size);
                self.attribute(scheduled, *on, LIST, |k, on| match on {
                    On::File(file) => flistxattr(file, buffer),
                    On::Path(path, links) => k.listxattr((path, links), buffer),
                })
            }
            _ => Ok(()),
        }
    }

    fn attribute(
        &mut self,
        scheduled: &ScheduledCall,
        subject: Subject,
        [of_file, of_link, of_path]: Ops,
        call: impl FnOnce(&K, On<'_>) -> Answer,
    ) -> Replayed {
        let (path, follow) = match subject {
            Subject::File(slot) => {
                let kernel = self.kernel;
                return self.on(scheduled, of_file, slot, |file| {
                    call(kernel, On::File(file))
                });
            }
            Subject::Path { path, follow } => (path, follow),
        };
        let (op, links) = if follow {
            (of_path, Links::Follow)
        } else {
            (of_link, Links::Keep)
        };
        let act = Act { op, path };
        let whole = self.performance.names.path(path);
        let ended = self.measure(act, |kernel| call(kernel, On::Path(whole, links)));
        self.settle(scheduled, act, ended)
    }
}
