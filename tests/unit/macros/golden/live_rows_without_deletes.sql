select * from (
      select 1 as `id`, 'a' as `status`
    ) where not coalesce(gone or late, false)
