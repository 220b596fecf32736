//! Pages of columns, held against their own length before the Parquet library makes room for what they claim.

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::RowGroupReader;

/// Read a column of a row group.
pub(crate) fn column_reader(group: &dyn RowGroupReader, index: usize) -> Result<ColumnReader> {
    let description = group.metadata().schema_descr().column(index);
    let pages = CheckedPages(group.get_column_page_reader(index)?);
    Ok(get_column_reader(description, Box::new(pages)))
}

/// Refuses dictionaries that claim more values than they have bytes: the library would allocate them all.
struct CheckedPages(Box<dyn PageReader>);

fn checked(page: Page) -> Result<Page> {
    match &page {
        Page::DictionaryPage {
            buf, num_values, ..
        } if usize::try_from(*num_values).map_or(true, |values| values > buf.len()) => {
            let message = format!(
                "a dictionary of {} bytes claims {num_values} values",
                buf.len()
            );
            Err(ParquetError::General(message))
        }
        _ => Ok(page),
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.0.get_next_page()?.map(checked).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::basic::Encoding;

    fn dictionary(bytes: usize, num_values: u32) -> Page {
        Page::DictionaryPage {
            buf: vec![0; bytes].into(),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        }
    }

    #[test]
    fn a_dictionary_that_claims_more_than_it_has_is_refused() {
        assert!(checked(dictionary(32, 32)).is_ok());
        let refused = checked(dictionary(32, u32::MAX)).unwrap_err().to_string();
        assert!(refused.contains("a dictionary of 32 bytes claims 4294967295 values"));
        assert!(checked(dictionary(32, 33)).is_err());
    }
}
