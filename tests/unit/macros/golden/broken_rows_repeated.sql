select `id`, `it's ``odd```, count(*) from `shop`.`orders__next` where not (`id` is null or `it's ``odd``` is null)
  group by `id`, `it's ``odd``` having count(*) > 1 order by `id`, `it's ``odd``` limit 5
