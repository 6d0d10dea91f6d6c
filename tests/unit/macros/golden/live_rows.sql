select 1 as `id`, 'a' as `status`
