select
    count_if(`id` is null) as c0,
    max((select count(*) from (select `id`, `it's ``odd```, count(*) from `shop`.`orders__next` where not (`id` is null or `it's ``odd``` is null)
  group by `id`, `it's ``odd``` having count(*) > 1))) as c1,
    count_if(not (price > 0)) as c2
  from `shop`.`orders__next`
